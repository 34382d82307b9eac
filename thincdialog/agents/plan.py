"""What an agent learns of a batch, as the host knows it: all of it goes to a device in one copy."""

from typing import Any, Callable, Hashable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from ..examples.batch import Batch

# Ids and segments of all tokens, and how many each text has.
Encoded = Tuple[Any, Any]


class Plan(NamedTuple):
    """What is learnt of a batch.

    batch (Batch): The examples that are learnt.
    texts (Sequence[Tuple[Encoded, int]]): What the model reads, each with its field.
    numbers (Sequence[np.ndarray]): What else it is given, such as where the right ones are.
    replies (Callable): Gives the texts that these numbers stand for.
    places (Optional[List[int]]): Index of each example in the batch before examples with bad
        candidates were ignored; None if none were.
    """

    batch: Batch
    texts: Sequence[Tuple[Encoded, int]]
    numbers: Sequence[np.ndarray]
    replies: Callable[[], Sequence[str]]
    places: Optional[List[int]] = None

    @property
    def role(self) -> Tuple[Hashable, ...]:
        """Plans of one role have as many arrays of the same meaning."""
        return (*(field for _, field in self.texts), len(self.numbers))

    def arrays(self) -> List[np.ndarray]:
        """All of it, texts as int32."""
        return [_int32(array) for encoded, _ in self.texts for array in encoded] + [*self.numbers]


def _int32(array: Any) -> Any:
    return np.asarray(array, dtype="i")
