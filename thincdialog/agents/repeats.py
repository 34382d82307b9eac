"""Candidates that would say once more what was said in the conversation already."""

from itertools import islice
from typing import Any, Mapping, Optional

from ..examples.batch import Batch
from ..teachers import Teacher

# The share of training labels that repeat something from which on a repeat is no echo, but how
# one talks there. In open conversations it is 0.1 to 0.4 %, and blocking helps; where an
# agent has fixed phrases it is 4.5 % (STAR) to 27 % (bAbI's dialogues), and blocking harms.
MANY_REPEATS = 0.02
# The number of examples of each task that are looked at, the first ones.
LOOKED_AT = 4_000


def shall_block(setting: Optional[bool], train: Teacher) -> bool:
    """Whether an agent keeps repeats after its other candidates.

    setting (Optional[bool]): What its config says; None: whether the labels of the training
        data rarely repeat something.
    """
    if setting is not None:
        return setting
    n_labels = n_repeats = 0
    for task in train.by_task().values():
        for example in islice(task.examples(), LOOKED_AT):
            if example.all_labels:
                n_labels += 1
                (said,) = Batch.of([example]).said()
                n_repeats += example.all_labels[0] in said
    return n_repeats < MANY_REPEATS * n_labels


def kept_setting(setting: Optional[bool], state: Mapping[str, Any]) -> bool:
    """The same of a saved agent; those of before there was this setting stay without it.

    state (Mapping[str, Any]): Of the agent, with ``blocks_repeats``.
    RAISES (TypeError): If it is not such a state.
    """
    kept = state.get("blocks_repeats", False)
    if not isinstance(kept, bool):
        raise TypeError("blocks_repeats is neither true nor false")
    return kept if setting is None else setting
