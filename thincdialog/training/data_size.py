"""What a config leaves to the size of its training data, with "auto"."""

from typing import Any, Dict, Mapping, Optional

from ..loggers.values import leaves

# Replies compete within a batch, and more of them are better.
FULL_BATCH = {"class": 128, "reply": 512}
SMALLEST_BATCH = 32
# Batches of an epoch, below which they are halved.
FEWEST_BATCHES = 32
LEAST_STEPS = 1000


def chosen_settings(
    sections: Mapping[str, Any], n_examples: Optional[int], has_classes: bool
) -> Dict[str, int]:
    """A number for each setting of a config that is "auto".

    sections (Mapping[str, Any]): Of the config.
    n_examples (Optional[int]): Training examples; None for a stream, which counts as large.
    has_classes (bool): Whether labels are classes; else they are replies.
    RETURNS (Dict[str, int]): Dotted name to number.
    """
    size = FULL_BATCH["class" if has_classes else "reply"]
    while n_examples is not None and size > SMALLEST_BATCH and n_examples < FEWEST_BATCHES * size:
        size //= 2
    numbers = {"world.batcher.size": size, "training.min_steps": LEAST_STEPS}
    given = dict(leaves(sections))
    return {name: number for name, number in numbers.items() if given.get(name) == "auto"}
