"""Settings that are "auto" in a config, and so depend on the size of the training data."""

from typing import Any, Dict, List, Mapping, Optional, Sequence

from ..loggers.values import leaves

# Rankers get larger batches, because replies are ranked against each other within a batch.
FULL_BATCH = {"class": 128, "reply": 512}
SMALLEST_BATCH = 32
# If an epoch has fewer batches than this, the batch size is halved.
FEWEST_BATCHES = 32
# Rankers of small data get worse with more steps, if no dev data ends their training in time.
LEAST_STEPS = {"class": 1000, "reply": 0}
SETTINGS = ("world.batcher.size", "training.min_steps")


def left_to_size(sections: Mapping[str, Any]) -> List[str]:
    """Return the settings that are "auto" in a config's sections, as dotted names."""
    given = dict(leaves(sections))
    return [name for name in SETTINGS if given.get(name) == "auto"]


def chosen_settings(
    names: Sequence[str], n_examples: Optional[int], has_classes: bool
) -> Dict[str, int]:
    """Choose a number for each setting that is "auto".

    names (Sequence[str]): Dotted names of the settings (see ``left_to_size``).
    n_examples (Optional[int]): Number of training examples; None for a stream, which counts as
        large.
    has_classes (bool): Whether labels are classes; otherwise they are replies.
    RETURNS (Dict[str, int]): Dotted name to number.
    """
    kind = "class" if has_classes else "reply"
    size = FULL_BATCH[kind]
    while n_examples is not None and size > SMALLEST_BATCH and n_examples < FEWEST_BATCHES * size:
        size //= 2
    numbers = dict(zip(SETTINGS, (size, LEAST_STEPS[kind])))
    return {name: numbers[name] for name in names}
