"""Measure the padding in batches, and the cost of choosing the batches.

The data is generated lengths (those of tests/batchers/corpora.py) and, if ../shared/data has
them, real conversations: three turns of context and the reply, two fields that are padded
separately. The same rows are batched in file order, by ``Batchsort`` with batches of the same
number of rows, and by ``Words`` with a budget of cells, each row once. Costs are CPU time per
row, median of 7.

    python tests/benchmarks/bench_batching.py
"""

import sys
from itertools import chain
from typing import Callable, Dict, List, NamedTuple, Optional, Tuple

import numpy as np
from measuring import DATA, ROOT, Stopwatch, has_data, in_turns, medians, read_rows, sized

from thincdialog.batchers import Batcher, Batchsort, Lengths, LiveBuffer, Words
from thincdialog.batchers.batcher import missing_rows, plan_window

sys.path.insert(0, str(ROOT))
from tests.batchers import corpora  # noqa: E402

(N_ROWS, N_REPEATS), CONTEXT_TURNS = sized((100_000, 7), (1_000, 1)), 3
Batches = List[np.ndarray]


class Corpus(NamedTuple):
    """Lengths of the rows to batch.

    size (int): Rows per batch of fixed size.
    budget (int): Cells per batch of ``Words``.
    goal (Optional[float]): Upper limit for the padding, in percent of the cells.
    """

    name: str
    lengths: Lengths
    size: int
    budget: int
    goal: Optional[float]

    def padding(self, batches: Batches) -> float:
        """Return the padding in percent of the cells."""
        return 100 * corpora.padding(self.lengths, batches)

    def in_file_order(self) -> Batches:
        rows = np.arange(len(self.lengths.counts))
        return [rows[start : start + self.size] for start in range(0, len(rows), self.size)]

    def numbers(self, batches: Batches) -> str:
        """Format the padding, the number of batches, and the cells of the largest batch."""
        largest = max(self.lengths.take(batch).cells() for batch in batches)
        return f"{self.padding(batches):5.1f} % {len(batches):6,} {largest:7,}"


def conversations(name: str) -> Lengths:
    """Count the words of up to three turns of context, and those of the reply."""
    paths = sorted((DATA / name).glob("*train.jsonl.gz"))
    rows: List[Tuple[int, int]] = []
    for row in read_rows(next(path for path in paths if not path.name.startswith("stream"))):
        words = [len(turn["text"].split()) for turn in row["turns"]]
        for turn in range(1, len(words)):
            rows.append((sum(words[max(0, turn - CONTEXT_TURNS) : turn]), words[turn]))
    return corpora.lengths_of(np.random.default_rng(0).permutation(np.array(rows)))


def all_corpora() -> Dict[str, Corpus]:
    found = [
        Corpus("one field, lognormal", corpora.one_field(N_ROWS), 64, 1024, 1.2),
        Corpus("context + label", corpora.two_fields(N_ROWS), 32, 4096, 5.5),
        Corpus("skewed.jsonl", corpora.skewed(), 32, 1600, 12.0),
    ]
    for name in filter(has_data, ("qmsum_meetings", "ubuntu_irc")):
        found.append(Corpus(name, conversations(name), 32, 4096, None))
    return {corpus.name: corpus for corpus in found}


def in_windows(batcher: Batcher, lengths: Lengths) -> Tuple[Batches, float]:
    """Choose batches window after window, as teachers do. Return them and the CPU seconds it
    took."""
    rng, watch = np.random.default_rng(0), Stopwatch()
    words = np.append(0, lengths.totals.cumsum())
    batches: Batches = []
    start, n_rows = 0, len(lengths.counts)
    while start < n_rows:
        stop, step = start, len(batches)
        while stop < n_rows:
            n_words = int(words[stop] - words[start])
            n_missing = missing_rows(batcher, step, stop - start, n_words)
            if not n_missing:
                break
            stop = min(n_rows, stop + n_missing)
        rows = lengths.take(np.arange(start, stop))
        with watch:
            chosen = plan_window(batcher, rows, batcher.window(step)[0], rng)
        batches += [batch + start for batch in chosen]
        start = stop
    return checked(batches, n_rows), watch.seconds


def live(batcher: Batcher, lengths: Lengths) -> Tuple[Batches, float]:
    """Choose batches from a buffer of waiting conversations. Each one that ends is replaced by a
    new one. Return the batches and the CPU seconds it took."""
    buffer, watch = LiveBuffer(batcher, [0]), Stopwatch()
    batches: Batches = []
    fed, n_rows = 0, len(lengths.counts)
    while True:
        while fed < n_rows:
            with watch:
                n_missing = buffer.missing()
            if not n_missing:
                break
            slots = range(fed, min(n_rows, fed + n_missing))
            rows = lengths.take(np.arange(fed, slots.stop))
            fed = slots.stop
            with watch:
                buffer.add(slots, rows)
        if not len(buffer):
            return checked(batches, n_rows), watch.seconds
        with watch:
            batch = buffer.next_batch(fed < n_rows)
        batches.append(np.array(batch))


def by_cache(lengths: Lengths, size: int, length_range: int) -> Batches:
    """Batch as ParlAI's PytorchDataTeacher does in its first epoch, sorted by
    ``batch_sort_cache_type = "pop"``: a row joins the rows of its text's length, or of the nearest
    length within the range that has rows already. As soon as `size` rows are together, they are a
    batch. The remaining rows are cut into batches in order of their lengths."""
    waiting: Dict[int, List[int]] = {}
    batches: Batches = []
    for row, n_words in enumerate(lengths.counts[:, 0].tolist()):
        steps = (step for n in range(1, length_range) for step in (n, -n))
        near = (n_words + step for step in chain([0], steps))
        found = waiting.setdefault(next((n for n in near if n in waiting), n_words), [])
        found.append(row)
        if len(found) == size:
            batches.append(np.array(found))
            found.clear()
    left = [row for n_words in sorted(waiting) for row in waiting[n_words]]
    batches += [np.array(left[start : start + size]) for start in range(0, len(left), size)]
    return checked(batches, len(lengths.counts))


def checked(batches: Batches, n_rows: int) -> Batches:
    rows = np.sort(np.concatenate(batches))
    assert (rows == np.arange(n_rows)).all(), "a row was lost or came twice"
    return batches


def against(value: float, goal: Optional[float]) -> str:
    is_met = goal is not None and value <= goal
    return "-" if goal is None else f"<= {goal:g} % {'reached' if is_met else 'MISSED'}"


def print_padding(found: Dict[str, Corpus]) -> None:
    """Print one line for each corpus."""
    print(f"{'':32}{'file order':>24}{'Batchsort':>26}{'Words':>26}   goal for Words")
    print(f"{'':32}{'  '.join(['padding  batches largest'] * 3)}")
    for corpus in found.values():
        before = corpus.in_file_order()
        fixed, _ = in_windows(Batchsort(corpus.size), corpus.lengths)
        ours, _ = in_windows(Words(corpus.budget), corpus.lengths)
        cells = [f"{corpus.numbers(batches):>24}" for batches in (before, fixed, ours)]
        print(
            f"{f'{corpus.name}, {corpus.size} / {corpus.budget:,}':32}{'  '.join(cells)}"
            f"   {against(corpus.padding(ours), corpus.goal)}"
        )


def print_caches(found: Dict[str, Corpus]) -> None:
    """Compare ParlAI's caches with our batchers: one line for each corpus."""
    print("\npadding under the cache of ParlAI's PytorchDataTeacher, and under our batchers")
    for corpus in found.values():
        cases = {
            "pop, range 5": by_cache(corpus.lengths, corpus.size, 5),
            "pop, range 1": by_cache(corpus.lengths, corpus.size, 1),
            "Batchsort": in_windows(Batchsort(corpus.size), corpus.lengths)[0],
            "Words": in_windows(Words(corpus.budget), corpus.lengths)[0],
        }
        cells = [f"{name} {corpus.padding(batches):4.1f} %" for name, batches in cases.items()]
        print(f"  {corpus.name:24}{'   '.join(cells)}")


def print_live(corpus: Corpus) -> None:
    print("\nskewed.jsonl as live conversations, 31 batches wait")
    file_order = corpus.padding(corpus.in_file_order())
    for make, size, goal in ((Batchsort, 32, 28.0), (Words, 1600, None)):
        padding = corpus.padding(live(make(size, buffer=31), corpus.lengths)[0])
        text = f"{padding:5.1f} %  (file order {file_order:.1f} %)   {against(padding, goal)}"
        print(f"  {f'{make.__name__}({size}, buffer=31)':30}{text}")


def print_costs(found: Dict[str, Corpus]) -> None:
    print("\ncost of choosing, µs of CPU a row")
    five = np.concatenate([found["skewed.jsonl"].lengths.counts] * 5)
    skewed = Lengths(np.random.default_rng(0).permutation(five), (True, True))
    one, two = found["one field, lognormal"].lengths, found["context + label"].lengths
    cases: Dict[str, Tuple[Callable, Batcher, Lengths]] = {
        "window, one field, Words(1024)": (in_windows, Words(1024), one),
        "window, two fields, Words(4096)": (in_windows, Words(4096), two),
        "window, two fields, Batchsort(32)": (in_windows, Batchsort(32), two),
        "live, Batchsort(32, buffer=31)": (live, Batchsort(32, buffer=31), skewed),
        "live, Words(1600, buffer=31)": (live, Words(1600, buffer=31), skewed),
        "live, Words(1600)": (live, Words(1600), skewed),
    }

    def micros(name: str) -> float:
        run, batcher, lengths = cases[name]
        return run(batcher, lengths)[1] / len(lengths.counts) * 1e6

    for name, micros_a_row in medians(in_turns(cases, micros, N_REPEATS)).items():
        print(f"  {name:38}{micros_a_row:6.2f}")


def main() -> None:
    found = all_corpora()
    print_padding(found)
    print_caches(found)
    print_live(found["skewed.jsonl"])
    print_costs(found)


if __name__ == "__main__":
    main()
