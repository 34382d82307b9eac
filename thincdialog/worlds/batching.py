"""What batching worlds ask of an agent before they batch: lengths, shorter reading."""

from typing import Callable, List, Sequence, Tuple

import numpy as np

from ..batchers import Batcher, Lengths, OversizeError, count_words
from ..errors import ConfigError, Problem, ProtocolError
from ..messages import Message
from ..protocol import Agent
from ..teachers.teacher import Teacher

Measure = Callable[[Sequence[Message]], Lengths]


def measure_of(batcher: Batcher, agent: Agent) -> Measure:
    """How long observations are: as the agent says, or words if it does not; nothing is
    measured for a batcher that does not look at lengths."""
    if not batcher.needs_lengths:
        return _no_lengths
    if not hasattr(agent, "batch_lengths"):
        return count_words
    known: List[Tuple[bool, ...]] = []

    def measure(observations: Sequence[Message]) -> Lengths:
        lengths = agent.batch_lengths(observations)
        counts, padded = lengths if isinstance(lengths, tuple) else (lengths, ())
        fields = known[0] if known else tuple(padded)
        shape = (len(observations), len(fields))
        is_array = isinstance(counts, np.ndarray) and counts.dtype.kind in "iu"
        is_good = is_array and fields and counts.shape == shape and tuple(padded) == fields
        if not is_good or (counts.size and counts.min() < 0):
            kind = f"{counts.dtype} of shape {counts.shape}" if is_array else type(counts).__name__
            raise ProtocolError(
                f"{agent.id}.batch_lengths() must give Lengths(counts, padded): counts an array "
                "of whole numbers, 0 or more, of one row for each observation and one column for "
                "each field, and padded one bool for each field, always the same ones. For "
                f"{len(observations)} observations it gave counts {kind}, padded {padded}."
            )
        known[:] = [fields]
        return Lengths(counts, fields)

    return measure


def _no_lengths(observations: Sequence[Message]) -> Lengths:
    return Lengths(np.zeros((len(observations), 1), dtype=np.int64), (False,))


def check_oversize(batcher: Batcher, agent: Agent) -> None:
    """See that the agent can shorten what it reads, if the batcher wants it to.

    RAISES (ConfigError): If it cannot.
    """
    if batcher.unit == "words" and batcher.oversize == "truncate" and not agent.can_truncate:
        text = f'the batcher has oversize = "truncate", but {agent.id} cannot shorten what it reads'
        where = "[world.batcher] (or [evaluation.world.batcher])"
        raise ConfigError([Problem("", text, f'set it to "alone" or "error" in {where}')])


def fit_rows(
    batcher: Batcher,
    lengths: Lengths,
    limit: int,
    observations: Sequence[Message],
    teacher: Teacher,
) -> Lengths:
    """What is read of observations beyond the limit: those that are shortened get the
    field ``max_tokens``.

    RAISES (DataError): If one is beyond the limit and the batcher calls this an error.
    """
    try:
        fitted = batcher.fit(lengths, limit)
    except OversizeError as error:
        name = str(observations[error.row].get("id"))
        raise error.of_example(name, teacher.data_name) from None
    if fitted is not lengths:
        for row in np.flatnonzero((fitted.counts != lengths.counts).any(axis=1)).tolist():
            observations[row]["max_tokens"] = tuple(fitted.counts[row].tolist())
    return fitted
