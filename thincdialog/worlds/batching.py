"""What batching worlds ask of an agent: lengths, shorter reading, answers."""

from typing import Callable, List, Sequence

import numpy as np

from ..batchers import Batcher, Lengths, OversizeError, count_words
from ..errors import ConfigError, DataError, Problem, ProtocolError
from ..messages import Message
from ..protocol import Agent, Observations
from ..teachers.teacher import Teacher

Measure = Callable[[Sequence[Message]], Lengths]


def measure_of(batcher: Batcher, agent: Agent) -> Measure:
    """How long observations are: as the agent says, or words if it does not; nothing is
    measured for a batcher that does not look at lengths."""
    if not batcher.needs_lengths:
        return _no_lengths
    measure: Measure = getattr(agent, "batch_lengths", count_words)
    return measure


def _no_lengths(observations: Sequence[Message]) -> Lengths:
    return Lengths(np.zeros((len(observations), 1), dtype=np.int64), (False,))


def check_oversize(batcher: Batcher, agent: Agent) -> None:
    """See that the agent can shorten what it reads, if the batcher wants it to.

    RAISES (ConfigError): If it cannot.
    """
    if batcher.unit == "words" and batcher.oversize == "truncate" and not agent.can_truncate:
        text = f'[world.batcher] oversize = "truncate", but {agent.id} cannot shorten what it reads'
        raise ConfigError([Problem("", text, 'set it to "alone" or "error"')])


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
        raise oversize_error(error, observations[error.row], teacher) from None
    if fitted is not lengths:
        for row in np.flatnonzero((fitted.counts != lengths.counts).any(axis=1)).tolist():
            observations[row]["max_tokens"] = tuple(fitted.counts[row].tolist())
    return fitted


def oversize_error(error: OversizeError, message: Message, teacher: Teacher) -> DataError:
    """The error for a row that does not fit into a batch, as a user can mend it."""
    text = (
        f"example '{message.get('id')}' has {error.length} words, but a batch holds "
        f'{error.limit}: raise budget, or set oversize = "alone" or "truncate"'
    )
    return DataError(teacher.data_name, text)


def answers(agent: Agent, observations: Observations) -> Sequence[Message]:
    """The agent's replies.

    RAISES (ProtocolError): If there is not one for each observation.
    """
    replies: List[Message] = agent.batch_act(observations)  # type: ignore[attr-defined]
    if len(replies) != len(observations):
        raise ProtocolError(
            f"{agent.id}.batch_act() gave {len(replies)} replies "
            f"to {len(observations)} observations."
        )
    return replies
