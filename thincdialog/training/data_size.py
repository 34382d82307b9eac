"""What a config leaves to the size of its training data, with "auto"."""

from typing import Any, Dict, List, Mapping, Optional, Sequence

from ..loggers.values import leaves

# Replies compete within a batch, and more of them are better.
FULL_BATCH = {"class": 128, "reply": 512}
SMALLEST_BATCH = 32
# Batches of an epoch, below which they are halved.
FEWEST_BATCHES = 32
LEAST_STEPS = 1000
SETTINGS = ("world.batcher.size", "training.min_steps")


def left_to_size(sections: Mapping[str, Any]) -> List[str]:
    """RETURNS (List[str]): Settings of a config's sections that are "auto", as dotted names."""
    given = dict(leaves(sections))
    return [name for name in SETTINGS if given.get(name) == "auto"]


def chosen_settings(
    names: Sequence[str], n_examples: Optional[int], has_classes: bool
) -> Dict[str, int]:
    """A number for each setting that is "auto".

    names (Sequence[str]): Of the settings (see ``left_to_size``).
    n_examples (Optional[int]): Training examples; None for a stream, which counts as large.
    has_classes (bool): Whether labels are classes; else they are replies.
    RETURNS (Dict[str, int]): Dotted name to number.
    """
    size = FULL_BATCH["class" if has_classes else "reply"]
    while n_examples is not None and size > SMALLEST_BATCH and n_examples < FEWEST_BATCHES * size:
        size //= 2
    numbers = dict(zip(SETTINGS, (size, LEAST_STEPS)))
    return {name: numbers[name] for name in names}
