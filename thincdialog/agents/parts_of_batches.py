"""Batches that do not fit the memory of a GPU, learnt or answered in parts."""

from typing import Any, List, Optional, Sequence

import numpy as np
from thinc.util import is_numpy_array

from ..errors import DeviceMemoryError
from ..examples.batch import Batch
from ..messages import Message
from ..ops.device_memory import in_parts_that_fit, no_room
from ..protocol import SPLIT_BATCHES


def learn_what_fits(agent: Any, batch: Batch) -> Optional[Sequence[Message]]:
    """Let an agent ``learn`` a batch; one that does not fit the memory of a GPU is learnt in two
    parts, these in two, and so on.

    agent (ModelAgent): Learns the parts by ``learn_part``.
    RAISES (DeviceMemoryError): If a single example does not fit.
    """
    counters = agent.counters
    if is_numpy_array(agent.weights) or counters.examples != agent.n_before:
        # What waits in the gradients could not be told from it.
        return agent.learn(batch)
    before = counters.waiting()

    def learn(parts: Sequence[np.ndarray]) -> Optional[Sequence[Message]]:
        if len(parts) == 1:
            return agent.learn(batch)
        replies = []
        for rows in parts:
            replies.append(agent.learn_part(batch, rows))
            # Each part has a gradient for the rows of all candidates: kept till the step, they
            # would take more than the batch did.
            agent.parameters.write_rows()
        counters.counts[SPLIT_BATCHES] += 1
        return _joined(replies, parts)

    def go_back() -> None:
        counters.go_back(before)
        agent.parameters.clear_gradients()
        agent.model.ops.seed(*agent.draws)

    return in_parts_that_fit(len(batch.rows), learn, go_back, lambda: too_large(agent, batch))


def answer_what_fits(agent: Any, batch: Batch) -> Sequence[Message]:
    """Let an agent ``answer`` a batch, in parts as above.

    agent (ModelAgent): Answers the parts by ``answer_part``.
    RAISES (DeviceMemoryError): If a single example does not fit.
    """
    counters = agent.counters
    if is_numpy_array(agent.weights):
        return agent.answer(batch)
    before = counters.waiting()

    def answer(parts: Sequence[np.ndarray]) -> Sequence[Message]:
        if len(parts) == 1:
            return agent.answer(batch)
        replies = [agent.answer_part(batch, rows) for rows in parts]
        counters.split_evaluation()
        return _joined(replies, parts) or []

    return in_parts_that_fit(
        len(batch.rows),
        answer,
        lambda: counters.go_back(before),
        lambda: too_large(agent, batch, is_learnt=False),
    )


def too_large(agent: Any, batch: Batch, is_learnt: bool = True) -> DeviceMemoryError:
    """The error for a batch of which not even a single example fits."""
    ids = batch.ids()
    longest = int(agent.batch_lengths(batch).counts.max())
    shown = ", ".join(map(str, ids[:8])) + (", ..." if len(ids) > 8 else "")
    remedy = (
        "a smaller [world] batcher, whose candidates are encoded together"
        if is_learnt
        else "answer with fewer candidates, or on the CPU (--gpu-id -1)"
    )
    text = (
        f"a single example of the batch with {shown} (up to {longest:,} tokens). Set a smaller "
        f"width or max_context in [agent], or {remedy}."
    )
    return no_room(text)


def _joined(
    replies: Sequence[Optional[Sequence[Message]]], parts: Sequence[np.ndarray]
) -> Optional[Sequence[Message]]:
    """Of all parts of a batch, in their order."""
    if all(each is None for each in replies):
        return None
    found: List[Message] = []
    for of_part, rows in zip(replies, parts):
        found.extend(of_part or [Message() for _ in rows])
    return found
