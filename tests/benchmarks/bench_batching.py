"""Padding in batches, and what it costs to choose them; saves a picture of batches.

Generated lengths (those of tests/batchers/corpora.py) and, where they are, the real
conversations of ../shared/data: three turns of context and the reply, two fields that
are padded separately. The same rows in file order, by ``Batchsort`` with batches of
the same number of rows, and by ``Words`` with a budget of cells; every row once. Costs
are CPU time a row, median of 7.

    python tests/benchmarks/bench_batching.py

The table is printed; the picture is output/benchmarks/batching.png.
"""

import gzip
import json
import statistics
import sys
import time
from pathlib import Path
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from thincdialog.batchers import (
    Batcher,
    Batchsort,
    Lengths,
    LiveBuffer,
    Words,
    missing_rows,
    plan_window,
)

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tests.batchers import corpora  # noqa: E402
from tests.benchmarks.batching_picture import Panel, save_picture  # noqa: E402

DATA = ROOT.parent / "shared" / "data"
PICTURE = ROOT / "output" / "benchmarks" / "batching.png"
N_ROWS, N_REPEATS, CONTEXT_TURNS = 100_000, 7, 3
Batches = List[np.ndarray]


class Corpus(NamedTuple):
    """Rows to batch.

    size (int): Rows of a batch of fixed size.
    budget (int): Cells of a batch of ``Words``.
    goal (Optional[float]): Most padding wanted, in per cent.
    """

    name: str
    lengths: Lengths
    size: int
    budget: int
    goal: Optional[float]


def conversations(name: str) -> Optional[Lengths]:
    """Words of up to three turns of context, and of the reply; None without the data."""
    paths = sorted((DATA / name).glob("*train.jsonl.gz"))
    paths = [path for path in paths if not path.name.startswith("stream")]
    if not paths:
        print(f"skipped: {name} is not in ../shared/data")
        return None
    rows: List[Tuple[int, int]] = []
    with gzip.open(paths[0], "rt", encoding="utf8") as lines:
        for line in lines:
            words = [len(turn["text"].split()) for turn in json.loads(line)["turns"]]
            rows += [
                (sum(words[max(0, turn - CONTEXT_TURNS) : turn]), words[turn])
                for turn in range(1, len(words))
            ]
    return corpora.lengths_of(np.random.default_rng(0).permutation(np.array(rows)))


def all_corpora() -> List[Corpus]:
    found = [
        Corpus("one field, lognormal", corpora.one_field(N_ROWS), 64, 1024, 1.2),
        Corpus("context + label", corpora.two_fields(N_ROWS), 32, 4096, 5.5),
        Corpus("skewed.jsonl", corpora.skewed(), 32, 1600, 12.0),
    ]
    for name in ("qmsum_meetings", "ubuntu_irc"):
        lengths = conversations(name)
        if lengths is not None:
            found.append(Corpus(name, lengths, 32, 4096, None))
    return found


def in_file_order(lengths: Lengths, size: int) -> Batches:
    rows = np.arange(len(lengths.counts))
    return [rows[start : start + size] for start in range(0, len(rows), size)]


def in_windows(batcher: Batcher, lengths: Lengths) -> Tuple[Batches, float]:
    """Window after window, as teachers read them, and the CPU seconds of choosing."""
    rng = np.random.default_rng(0)
    words = np.append(0, lengths.totals.cumsum())
    batches: Batches = []
    seconds, start, n_rows = 0.0, 0, len(lengths.counts)
    while start < n_rows:
        stop, step = start, len(batches)
        while stop < n_rows:
            n_words = int(words[stop] - words[start])
            n_missing = missing_rows(batcher, step, stop - start, n_words)
            if not n_missing:
                break
            stop = min(n_rows, stop + n_missing)
        rows = lengths.take(np.arange(start, stop))
        begun = time.process_time()
        limit, _ = batcher.window(step)
        chosen = plan_window(batcher, rows, limit, rng)
        seconds += time.process_time() - begun
        batches += [batch + start for batch in chosen]
        start = stop
    return batches, seconds


def live(batcher: Batcher, lengths: Lengths) -> Tuple[Batches, float]:
    """Through a buffer of waiting conversations, a new one for each that is over."""
    buffer = LiveBuffer(batcher, [0])
    batches: Batches = []
    seconds, fed, n_rows = 0.0, 0, len(lengths.counts)
    while True:
        while fed < n_rows:
            begun = time.process_time()
            n_missing = buffer.missing()
            seconds += time.process_time() - begun
            if not n_missing:
                break
            slots = range(fed, min(n_rows, fed + n_missing))
            rows = lengths.take(np.arange(fed, slots.stop))
            fed = slots.stop
            begun = time.process_time()
            buffer.add(slots, rows)
            seconds += time.process_time() - begun
        if not len(buffer):
            return batches, seconds
        begun = time.process_time()
        batch = buffer.next_batch(fed < n_rows)
        seconds += time.process_time() - begun
        batches.append(np.array(batch))


def checked(lengths: Lengths, batches: Batches) -> Batches:
    rows = np.sort(np.concatenate(batches))
    assert (rows == np.arange(len(lengths.counts))).all(), "a row was lost or came twice"
    return batches


def numbers(lengths: Lengths, batches: Batches) -> str:
    """Padding, batches, and the cells of the largest one."""
    largest = max(lengths.take(batch).cells() for batch in batches)
    padding = 100 * corpora.padding(lengths, batches)
    return f"{padding:5.1f} % {len(batches):6,} {largest:7,}"


def against(value: float, goal: Optional[float], unit: str) -> str:
    if goal is None:
        return "-"
    return f"<= {goal:g} {unit} {'reached' if value <= goal else 'MISSED'}"


def print_padding(found: List[Corpus]) -> Dict[str, Tuple[Batches, Batches]]:
    """One line for each corpus.

    RETURNS (Dict[str, Tuple[Batches, Batches]]): Batches in file order, and ours.
    """
    head = f"{'padding  batches largest':>24}"
    print(f"{'':32}{'file order':>24}{'Batchsort':>26}{'Words':>26}   goal for Words")
    print(f"{'':32}{head}  {head}  {head}")
    kept = {}
    for corpus in found:
        lengths = corpus.lengths
        before = in_file_order(lengths, corpus.size)
        fixed, _ = in_windows(Batchsort(corpus.size), lengths)
        ours, _ = in_windows(Words(corpus.budget), lengths)
        checked(lengths, fixed)
        checked(lengths, ours)
        cells = [numbers(lengths, batches) for batches in (before, fixed, ours)]
        padding = 100 * corpora.padding(lengths, ours)
        print(
            f"{corpus.name + f', {corpus.size} / {corpus.budget:,}':32}"
            + "  ".join(f"{text:>24}" for text in cells)
            + f"   {against(padding, corpus.goal, '%')}"
        )
        kept[corpus.name] = (before, ours)
    return kept


def print_live(found: List[Corpus]) -> None:
    lengths = next(corpus.lengths for corpus in found if corpus.name == "skewed.jsonl")
    print("\nskewed.jsonl as live conversations, 31 batches wait")
    file_order = 100 * corpora.padding(lengths, in_file_order(lengths, 32))
    for batcher, name, goal in (
        (Batchsort(32, buffer=31), "Batchsort(32, buffer=31)", 28.0),
        (Words(1600, buffer=31), "Words(1600, buffer=31)", None),
    ):
        batches = checked(lengths, live(batcher, lengths)[0])
        padding = 100 * corpora.padding(lengths, batches)
        text = f"{padding:5.1f} %  (file order {file_order:.1f} %)"
        print(f"  {name:30}{text}   {against(padding, goal, '%')}")


def print_costs(found: List[Corpus]) -> None:
    print("\ncost of choosing, µs of CPU a row")
    named = {corpus.name: corpus for corpus in found}
    five = np.concatenate([named["skewed.jsonl"].lengths.counts] * 5)
    skewed = Lengths(np.random.default_rng(0).permutation(five), (True, True))
    one, two = named["one field, lognormal"].lengths, named["context + label"].lengths
    cases: List[Tuple[str, Callable, Batcher, Lengths, float]] = [
        ("window, one field, Words(1024)", in_windows, Words(1024), one, 0.4),
        ("window, two fields, Words(4096)", in_windows, Words(4096), two, 0.4),
        ("window, two fields, Batchsort(32)", in_windows, Batchsort(32), two, 0.4),
        ("live, Batchsort(32, buffer=31)", live, Batchsort(32, buffer=31), skewed, 3.0),
        ("live, Words(1600, buffer=31)", live, Words(1600, buffer=31), skewed, 3.0),
        ("live, Words(1600)", live, Words(1600), skewed, 3.0),
    ]
    for name, run, batcher, lengths, goal in cases:
        seconds = [run(batcher, lengths)[1] for _ in range(N_REPEATS)]
        micros = statistics.median(seconds) / len(lengths.counts) * 1e6
        print(f"  {name:38}{micros:6.2f}   {against(micros, goal, 'µs')}")


def draw(found: List[Corpus], kept: Dict[str, Tuple[Batches, Batches]]) -> None:
    pairs = []
    for corpus in found:
        if corpus.name not in ("context + label", "skewed.jsonl"):
            continue
        before, after = kept[corpus.name]
        lengths = corpus.lengths
        shares = [100 * corpora.padding(lengths, batches) for batches in (before, after)]
        names = (f"file order, {corpus.size} rows a batch", f"Words({corpus.budget:,})")
        first, second = (
            Panel(f"{corpus.name}: {name}, {share:.0f} % padding", lengths, batches)
            for name, share, batches in zip(names, shares, (before, after))
        )
        pairs.append((first, second))
    try:
        save_picture(PICTURE, pairs)
    except ImportError:
        print("\nno picture: it needs matplotlib; pip install 'thincdialog[plot]'")
    else:
        print(f"\npicture: {PICTURE.relative_to(ROOT)}")


def main() -> None:
    found = all_corpora()
    kept = print_padding(found)
    print_live(found)
    print_costs(found)
    draw(found, kept)


if __name__ == "__main__":
    main()
