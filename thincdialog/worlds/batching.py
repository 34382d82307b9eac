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


def measure_of_columns(agent: Agent) -> Measure:
    """How long messages in columns are that the agent has not yet observed."""
    if not hasattr(agent, "batch_lengths"):
        return count_words

    def measure_columns(messages: Sequence[Message]) -> Lengths:
        lengths: Lengths = agent.batch_lengths(agent.batch_observe(messages))  # type: ignore
        return lengths

    return measure_columns


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
        name = observations[error.row].get("id")
        text = (
            f"the example '{name}' has {error.length} words (tokens), more than the "
            f"{error.limit} of a whole batch: raise the batcher's budget, or set its "
            'oversize = "alone" or "truncate"'
        )
        raise DataError(teacher.data_name, text) from None
    if fitted is not lengths:
        for row in np.flatnonzero((fitted.counts != lengths.counts).any(axis=1)).tolist():
            observations[row]["max_tokens"] = tuple(fitted.counts[row].tolist())
    return fitted


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
