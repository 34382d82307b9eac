"""The cost of reading the training data, and the padding of each way to make batches."""

import time
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Dict, List, Sequence, Tuple

import numpy as np

from ..batchers import Batcher, Batchsort, Fixed, Lengths, OversizeError, Words, plan_window
from ..batchers.fixed import FixedBatcher
from ..config import build_block
from ..examples.batch import Batch
from ..examples.store import Store
from ..loader.ordered import Spent
from ..loader.readers import choice
from ..messages import Message
from ..training.experiment import Experiment
from .data_survey import Reading

# Number of examples to read, and of rows in a batch if the config has no batcher.
N_EXAMPLES, N_ROWS = 8192, 32


@dataclass
class Padding:
    """Describe how a batcher would divide the examples.

    name (str): Name of the batcher, with its size.
    n_batches (int): Number of batches of the examples that were read.
    fraction (float): Fraction of padding, 0.0 to 1.0, in the rectangles of all batches: one for
        the contexts of a batch, and one for its labels.
    largest (int): Size of the largest batch in tokens, including padding.
    """

    name: str
    n_batches: int
    fraction: float
    largest: int


@dataclass
class BatchingCosts:
    """Hold the costs of the first training examples.

    n_examples (int): Number of examples that were read.
    reading_seconds (float): Wall time to read one example and apply its mutators.
    encoding_seconds (float): CPU time to tokenize one example; 0 if the agent reads no text.
    workers (List[str]): For each task that is read, the number of workers that ``[loader] workers =
        "auto"`` chooses, with the reason.
    pads (bool): Whether the model spends time on padding; most models of this library do not.
    paddings (List[Padding]): Padding of several batchers, the config's own first.
    """

    n_examples: int = 0
    reading_seconds: float = 0.0
    encoding_seconds: float = 0.0
    workers: List[str] = field(default_factory=list)
    pads: bool = False
    paddings: List[Padding] = field(default_factory=list)


def batching_costs(
    experiment: Experiment, reading: Reading, sizes: Dict[str, int]
) -> BatchingCosts:
    """Read the first training examples once more, and divide them into batches in several ways.

    experiment (Experiment): The experiment.
    reading (Reading): Describes how the agent reads. Its encoder must be new, because an encoder
        that has read the data has the texts in its cache.
    sizes (Dict[str, int]): Number of training examples of each task.
    """
    rows: List[Message] = []
    costs = BatchingCosts(pads=any(experiment.agent.padded))
    seconds = 0.0
    for name, task in experiment.tasks.items():
        if "train" not in task.splits:
            continue
        split = task.data["train"]
        begun = Spent.now()
        found = list(islice(chain.from_iterable(split.episodes()), N_EXAMPLES))
        spent = Spent.now().since(begun)
        seconds += spent.wall
        rows += found
        if found and not isinstance(split.source, Store):
            # Estimated time to read the whole split, from the time for these examples.
            whole = Spent(*(each * sizes[name] / len(found) for each in spent))
            costs.workers.append(choice("auto", split, whole).text)
    costs.n_examples, costs.reading_seconds = len(rows), seconds / max(1, len(rows))
    encoder = reading.encoder
    if encoder is None or not rows:
        return costs
    batch = Batch.of(rows)
    started = time.process_time()
    contexts = encoder.context_lengths(batch)
    costs.encoding_seconds = (time.process_time() - started) / len(rows)
    texts = [labels[0] if labels else "" for labels in batch.column("labels")]
    counts = np.stack([contexts, encoder.label_lengths(texts)], axis=1)
    for place, limit in enumerate((reading.max_context, reading.max_label)):
        if limit:
            counts[:, place] = np.minimum(counts[:, place], limit)
    if reading.has_classes:
        counts[:, 1] = 0
    costs.paddings = _compare(experiment, Lengths(counts, (True, True)))
    return costs


def _compare(experiment: Experiment, lengths: Lengths) -> List[Padding]:
    found: List[Tuple[str, Batcher]] = []
    own = Fixed(N_ROWS)
    world = experiment.settled.interpolated["world"]
    if "batcher" in world:
        block = world["batcher"]
        size = "size" if "size" in block else "budget"
        name = f"{block['@batchers']}, {size} = {block.get(size, '?')} (the config's)"
        own = build_block(experiment.settled, "world.batcher")
        found.append((name, own))
    batches = _cut(own, lengths)
    n_rows = max(1, round(np.mean([len(batch) for batch in batches])))
    cells = max(1, round(np.mean([lengths.take(batch).cells() for batch in batches])))
    if not found or not isinstance(own, FixedBatcher):
        found.append((f"thincdialog.Fixed.v1, size = {n_rows}", Fixed(n_rows)))
    found += [
        (f"thincdialog.Batchsort.v1, size = {n_rows}", Batchsort(n_rows)),
        (f"thincdialog.Words.v1, budget = {cells}", Words(cells)),
    ]
    return [_padding(name, batcher, lengths) for name, batcher in found]


def _cut(batcher: Batcher, lengths: Lengths) -> Sequence[np.ndarray]:
    limit, _ = batcher.window(0)
    try:
        fitted = batcher.fit(lengths, limit)
    except OversizeError:
        fitted = lengths
    return plan_window(batcher, fitted, limit, np.random.default_rng(0))


def _padding(name: str, batcher: Batcher, lengths: Lengths) -> Padding:
    batches = _cut(batcher, lengths)
    cells = [lengths.take(batch).cells() for batch in batches]
    fraction = 1 - float(lengths.counts.sum()) / max(1, sum(cells))
    return Padding(name, len(batches), fraction, max(cells))
