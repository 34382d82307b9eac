"""What reading the training data costs, and what each way to make batches would pad."""

import time
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Any, Dict, List, Sequence, Tuple

import numpy as np

from ..batchers import Batcher, Lengths, OversizeError, plan_window
from ..config import build_block
from ..data import TextEncoder
from ..examples.batch import Batch
from ..examples.store import Store
from ..loader.ordered import Spent
from ..loader.readers import choice
from ..messages import Message
from ..registry import registry
from ..teachers import Teacher
from ..training.experiment import Experiment

# Examples that are looked at, and rows in a batch where the config says nothing of batches.
N_EXAMPLES, N_ROWS = 8192, 32


@dataclass
class Padding:
    """How a batcher would cut the examples.

    name (str): Of the batcher, with its size.
    n_batches (int): Batches of the examples that were looked at.
    fraction (float): Cells of all rectangles that hold no token, 0.0 to 1.0; a rectangle for
        the contexts of a batch, and one for its labels.
    largest (int): Cells of the largest batch.
    """

    name: str
    n_batches: int
    fraction: float
    largest: int


@dataclass
class BatchingCosts:
    """Of the first training examples.

    n_examples (int): How many were looked at.
    reading_seconds (float): Wall time to read one and put it through its mutators.
    encoding_seconds (float): CPU time to make tokens of one; 0 if the agent reads no text.
    workers (List[str]): Of each task that is read, what ``[loader] workers = "auto"`` would choose,
        and why.
    pads (bool): Whether the model pays for padding: most of ours do not.
    paddings (List[Padding]): The config's own batcher first.
    """

    n_examples: int = 0
    reading_seconds: float = 0.0
    encoding_seconds: float = 0.0
    workers: List[str] = field(default_factory=list)
    pads: bool = False
    paddings: List[Padding] = field(default_factory=list)


def batching_costs(
    experiment: Experiment, encoder: Any, limits: Dict[str, int], sizes: Dict[str, int]
) -> BatchingCosts:
    """Read the first training examples once more, and cut them in several ways.

    encoder (Optional[TextEncoder]): Like the agent's, but it cuts nothing.
    limits (Dict[str, int]): "max_context" and "max_label" tokens that the agent keeps; 0: all.
    sizes (Dict[str, int]): Training examples of each task.
    """
    rows: List[Message] = []
    costs = BatchingCosts()
    seconds = 0.0
    for name, task in experiment.tasks.items():
        if "train" not in task.splits:
            continue
        begun = Spent.now()
        found = _first_rows(task)
        spent = Spent.now().since(begun)
        seconds += spent.wall
        rows += found
        split = task.data_of("train")
        if found and not isinstance(split.source, Store):
            # Of all that will be read, from what was read of it here.
            whole = Spent(*(each * sizes[name] / len(found) for each in spent))
            costs.workers.append(choice("auto", split, whole).text)
    costs.n_examples, costs.reading_seconds = len(rows), seconds / max(1, len(rows))
    costs.pads = any(experiment.agent.padded)
    if encoder is None or not rows:
        return costs
    batch = Batch.of(rows)
    started = time.process_time()
    contexts = encoder.context_lengths(batch)
    costs.encoding_seconds = (time.process_time() - started) / len(rows)
    counts = np.stack([contexts, _label_lengths(encoder, batch)], axis=1)
    for place, name in enumerate(("max_context", "max_label")):
        if limits.get(name):
            counts[:, place] = np.minimum(counts[:, place], limits[name])
    if experiment.agent.has_classes:
        counts[:, 1] = 0
    costs.paddings = _compare(experiment, Lengths(counts, (True, True)))
    return costs


def _first_rows(task: Teacher) -> List[Message]:
    found = chain.from_iterable(task.first_episodes("train", N_EXAMPLES))
    return list(islice(found, N_EXAMPLES))


def _label_lengths(encoder: TextEncoder, batch: Batch) -> np.ndarray:
    texts = [labels[0] if labels else "" for labels in batch.column("labels")]
    return encoder.label_lengths(texts)


def _compare(experiment: Experiment, lengths: Lengths) -> List[Padding]:
    registry.ensure_populated()
    fixed, batchsort, words = (
        registry.batchers.get(f"thincdialog.{name}.v1") for name in ("Fixed", "Batchsort", "Words")
    )
    world = experiment.settled.interpolated["world"]
    own = _cut(fixed(N_ROWS), lengths)
    name = f"size = {N_ROWS}"
    found: List[Tuple[str, Batcher]] = []
    if "batcher" in world:
        block = world["batcher"]
        size = "size" if "size" in block else "budget"
        name = f"{block['@batchers']}, {size} = {block.get(size, '?')} (the config's)"
        batcher = build_block(experiment.settled, "world.batcher")
        own = _cut(batcher, lengths)
        found.append((name, batcher))
    n_rows = max(1, round(np.mean([len(batch) for batch in own])))
    cells = max(1, round(np.mean([lengths.take(batch).cells() for batch in own])))
    if not any(type(batcher) is type(fixed(n_rows)) for _, batcher in found):
        found.append((f"thincdialog.Fixed.v1, size = {n_rows}", fixed(n_rows)))
    found += [
        (f"thincdialog.Batchsort.v1, size = {n_rows}", batchsort(n_rows)),
        (f"thincdialog.Words.v1, budget = {cells}", words(cells)),
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
