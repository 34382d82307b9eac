"""The padding of each way to make batches of the training data."""

from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, List, Sequence

import numpy as np

from ..batchers import Batcher, Batchsort, Fixed, Lengths, Words, plan_window
from ..batchers.fixed import FixedBatcher
from ..config import build_block
from ..errors import DataError
from ..examples.batch import Batch
from ..messages import Message
from ..training.experiment import Experiment
from .data_survey import Reading

# Number of examples of each task to read.
N_EXAMPLES = 8192


@dataclass
class Padding:
    """Describe how a batcher would divide the first training examples.

    name (str): Name of the batcher, with its size.
    n_batches (int): Number of batches.
    fraction (float): Fraction of padding, 0.0 to 1.0, in the rectangles of all batches: one for
        the contexts of a batch, and one for its labels.
    largest (int): Size of the largest batch in tokens, including padding.
    """

    name: str
    n_batches: int
    fraction: float
    largest: int


def find_paddings(experiment: Experiment, reading: Reading) -> List[Padding]:
    """Divide the first training examples into batches in several ways.

    experiment (Experiment): The experiment.
    reading (Reading): Describes how the agent reads.
    RETURNS (List[Padding]): Padding of several batchers, the config's own first; [] if the world
        has no batcher, or if the agent reads no text.
    """
    block = experiment.settled.interpolated["world"].get("batcher")
    if block is None or reading.encoder is None:
        return []
    rows: List[Message] = []
    for task in experiment.tasks.values():
        if "train" in task.splits:
            episodes = task.data["train"].episodes()
            rows += islice(chain.from_iterable(episodes), N_EXAMPLES)
    lengths = Lengths(_count_tokens(rows, reading), (True, True))
    size = "size" if "size" in block else "budget"
    own: Batcher = build_block(experiment.settled, "world.batcher")
    batchers = {f"{block['@batchers']}, {size} = {block.get(size, '?')} (the config's)": own}
    cells = _sizes(own, lengths)
    n_rows, budget = round(len(rows) / len(cells)), round(np.mean(cells))
    if not isinstance(own, FixedBatcher):
        batchers[f"thincdialog.Fixed.v1, size = {n_rows}"] = Fixed(n_rows)
    batchers[f"thincdialog.Batchsort.v1, size = {n_rows}"] = Batchsort(n_rows)
    batchers[f"thincdialog.Words.v1, budget = {budget}"] = Words(budget)
    n_tokens, found = int(lengths.counts.sum()), []
    for name, batcher in batchers.items():
        cells = _sizes(batcher, lengths)
        found.append(Padding(name, len(cells), 1 - n_tokens / sum(cells), max(cells)))
    return found


def _count_tokens(rows: Sequence[Message], reading: Reading) -> np.ndarray:
    """Count the tokens of each context and label, as the agent truncates them; shape (n, 2)."""
    encoder: Any = reading.encoder
    batch = Batch.of(rows)
    counts = np.zeros((len(rows), 2), dtype=np.int64)
    counts[:, 0] = encoder.context_lengths(batch)
    if not reading.has_classes:
        texts = [labels[0] if labels else "" for labels in batch.column("labels")]
        counts[:, 1] = encoder.label_lengths(texts)
    limits = [limit or counts.max() for limit in (reading.max_context, reading.max_label)]
    return np.minimum(counts, limits)


def _sizes(batcher: Batcher, lengths: Lengths) -> List[int]:
    """Return the size of each batch in tokens, including padding."""
    limit, _ = batcher.window(0)
    try:
        fitted = batcher.fit(lengths, limit)
    except DataError:
        fitted = lengths
    batches = plan_window(batcher, fitted, limit, np.random.default_rng(0))
    return [lengths.take(batch).cells() for batch in batches]
