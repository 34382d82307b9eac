"""What batching worlds have in common: conversations of copies, and what they ask of an agent
before they batch."""

from typing import List, Sequence, Tuple

import numpy as np

from ..batchers import Batcher, Lengths
from ..errors import ConfigError, Problem, ProtocolError
from ..examples.windows import Measure
from ..messages import Message
from ..protocol import Agent
from ..teachers.teacher import Teacher
from .world import World


class Talk:
    """A conversation: a copy of the teacher talks with a copy of the agent.

    said (Message): By the teacher at last.
    heard (Message): The same, as the agent observed it.
    """

    __slots__ = ("teacher", "agent", "said", "heard")

    def __init__(self, teacher: Teacher, agent: Agent):
        self.teacher, self.agent = teacher.clone(), agent.clone()
        self.said = self.heard = Message(episode_done=True)

    def go_on(self) -> Message:
        """The teacher says its next message; gives what the agent observes."""
        self.said = self.teacher.act()
        self.heard = self.agent.observe(self.said)
        return self.heard


def exchange(agent: Agent, talks: Sequence[Talk]) -> Sequence[Message]:
    """Let the agent answer what its copies have heard, all at once if it can; both sides of
    each conversation take note.

    RETURNS (Sequence[Message]): The replies.
    """
    if agent.can_batch:
        replies = World.ask(agent, [talk.heard for talk in talks], len(talks))
    else:
        replies = [talk.agent.act() for talk in talks]
    for talk, reply in zip(talks, replies):
        talk.teacher.observe(reply)
        talk.agent.self_observe(reply)
    return replies


def measure_of(batcher: Batcher, agent: Agent) -> Measure:
    """How long observations are, as the agent says; nothing is measured for a batcher that does
    not look at lengths."""
    if not batcher.needs_lengths:
        return lambda rows: Lengths(np.zeros((len(rows), 1), dtype=np.int64), (False,))
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


def check_oversize(batcher: Batcher, agent: Agent) -> None:
    """See that the agent can shorten what it reads, if the batcher wants it to.

    RAISES (ConfigError): If it cannot.
    """
    if batcher.unit == "words" and batcher.oversize == "truncate" and not agent.can_truncate:
        text = f'the batcher has oversize = "truncate", but {agent.id} cannot shorten what it reads'
        where = "[world.batcher] (or [evaluation.world.batcher])"
        raise ConfigError([Problem("", text, f'set it to "alone" or "error" in {where}')])
