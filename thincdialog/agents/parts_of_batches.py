"""Batches that do not fit the memory of a GPU, learnt in parts."""

from typing import Any, List, Optional, Sequence

import numpy as np
from thinc.util import is_numpy_array

from ..errors import DeviceMemoryError
from ..examples.batch import Batch
from ..messages import Message
from ..ops.device_memory import free, held_bytes, is_out_of_memory
from ..protocol import SPLIT_BATCHES


def learn_what_fits(agent: Any, batch: Batch) -> Optional[Sequence[Message]]:
    """Let an agent ``learn`` a batch; one that does not fit the memory of a GPU is learnt in two
    parts, these in two, and so on.

    agent (ModelAgent): Learns the parts by ``learn_part``.
    RAISES (DeviceMemoryError): If a single example does not fit.
    """
    counters, weights = agent.counters, agent.weights
    n_rows, n_parts = len(batch.rows), 1
    if is_numpy_array(weights) or counters.examples != agent.n_before:
        # What waits in the gradients could not be told from it.
        return agent.learn(batch)
    before = counters.waiting()
    while True:
        try:
            if n_parts == 1:
                return agent.learn(batch)
            parts = np.array_split(np.arange(n_rows), n_parts)
            replies = [agent.learn_part(batch, rows) for rows in parts]
            counters.counts[SPLIT_BATCHES] += 1
            return _joined(replies, parts)
        except Exception as error:
            if not is_out_of_memory(error, weights):
                raise
        # Only now, as an error holds what was computed till then.
        counters.go_back(before)
        agent.parameters.clear_gradients()
        agent.model.ops.seed(*agent.draws)
        free(weights)
        if n_parts >= n_rows:
            raise _too_large(agent, batch)
        n_parts = min(2 * n_parts, n_rows)


def _too_large(agent: Any, batch: Batch) -> DeviceMemoryError:
    ids, held = batch.ids(), held_bytes(agent.weights) or 0
    longest = int(agent.batch_lengths(batch).counts.max())
    shown = ", ".join(map(str, ids[:8])) + (", ..." if len(ids) > 8 else "")
    return DeviceMemoryError(
        f"The memory of the GPU ({held / 1e6:,.0f} MB taken) has no room for a single example "
        f"of the batch with {shown} (up to {longest:,} tokens). Set a smaller width or "
        "max_context, or a smaller [world] batcher, whose candidates are encoded together."
    )


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
