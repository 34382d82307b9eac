"""Candidates that repeat something already said in the conversation."""

from itertools import islice
from typing import Any, Mapping, Optional

from ..examples.batch import Batch
from ..teachers import Teacher

# Fraction of training labels that are repeats from which repeats are considered normal, and so not
# blocked. In open conversations the fraction is 0.1 to 0.4 %, and blocking helps; in data with
# fixed phrases it is 4.5 % (STAR) to 27 % (bAbI dialogues), and blocking harms.
MANY_REPEATS = 0.02
# Number of examples to check, the first ones of each task.
N_CHECKED = 4_000


def shall_block(setting: Optional[bool], train: Teacher) -> bool:
    """Return whether an agent should rank repeats below its other candidates.

    setting (Optional[bool]): Value from the config. If None, return whether repeats are rare among
        the labels of the training data.
    """
    if setting is not None:
        return setting
    n_labels = n_repeats = 0
    for task in train.by_task().values():
        for example in islice(task.examples(), N_CHECKED):
            if example.all_labels:
                n_labels += 1
                (said,) = Batch.of([example]).said()
                n_repeats += example.all_labels[0] in said
    return n_repeats < MANY_REPEATS * n_labels


def kept_setting(setting: Optional[bool], state: Mapping[str, Any]) -> bool:
    """Return the same setting for a saved agent. Agents saved before the setting existed do not
    block repeats.

    state (Mapping[str, Any]): State of the agent, with ``blocks_repeats``.
    RAISES (TypeError): If ``blocks_repeats`` is not a bool.
    """
    kept = state.get("blocks_repeats", False)
    if not isinstance(kept, bool):
        raise TypeError("blocks_repeats is neither true nor false")
    return kept if setting is None else setting
