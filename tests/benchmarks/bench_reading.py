"""Read and tokenise conversations: examples per second, and where the time goes.

The data is self_dialogue's training data (309 k context-reply pairs) in ../shared/data, with the
settings of configs/ranker.cfg. Each stage is timed in CPU seconds, median of 5 runs. "again" is a
second pass over the same examples, as in every epoch after the first.

    python tests/benchmarks/bench_reading.py
"""

import gzip
import json
import tempfile
from pathlib import Path

from measuring import DATA, cpu_seconds, first_rows, has_data, medians, sized

from thincdialog.batchers import Fixed
from thincdialog.data import TextEncoder
from thincdialog.data.tokenizers import HashNgramTokenizer
from thincdialog.formats.context import Bookmark
from thincdialog.formats.conversations import read_conversations
from thincdialog.formats.text_file import read_json_lines
from thincdialog.mutators.flatten import Flatten
from thincdialog.mutators.without_openings import WithoutOpenings
from thincdialog.teachers.text_formats import Conversations

NAME = "self_dialogue/train.jsonl.gz"
N_REPEATS, BATCH, EVERY_EPOCH = sized(5, 1), 512, "batches of arrays (every epoch)"


def encode(teacher, encoder):
    """Read one epoch of batches, with contexts and replies as arrays."""
    teacher.set_batches(Fixed(BATCH))
    teacher.start_epoch(0, 0)
    n_examples = 0
    while not teacher.epoch_done():
        batch = teacher.batch_act()
        encoder.pairs(batch)
        teacher.batch_observe([{}] * len(batch))
        n_examples += len(batch)
    return n_examples


def one_round(path):
    seconds = {}
    seconds["unzip and read JSON"], _ = cpu_seconds(
        lambda: sum(1 for _ in read_json_lines(path, Bookmark()))
    )
    both, _ = cpu_seconds(lambda: sum(1 for _ in read_conversations(path, "both")))
    seconds["check turns, make episodes"] = both - seconds["unzip and read JSON"]
    mutators = [Flatten(context_length=3), WithoutOpenings()]
    task = Conversations(train=path, label_speaker="both", mutators=mutators)
    teacher = task.for_split("train", training=True)
    whole, _ = cpu_seconds(lambda: teacher.n_examples)
    seconds["flatten, store"] = whole - both
    encoder = TextEncoder(HashNgramTokenizer(n_rows=65536, ngrams=1), history_size=3)
    first, n_examples = cpu_seconds(lambda: encode(teacher, encoder))
    again, _ = cpu_seconds(lambda: encode(teacher, encoder))
    seconds["tokenise (first epoch only)"] = first - again
    seconds[EVERY_EPOCH] = again
    return seconds, n_examples


def main():
    if not has_data(NAME):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = sized(DATA / NAME, Path(folder) / "train.jsonl.gz")
        if not path.exists():
            rows = "".join(json.dumps(row) + "\n" for row in first_rows(NAME, None))
            path.write_bytes(gzip.compress(rows.encode()))
        rounds = [one_round(str(path)) for _ in range(N_REPEATS)]
    n_examples = rounds[0][1]
    times = medians({name: [seconds[name] for seconds, _ in rounds] for name in rounds[0][0]})
    total = sum(times.values())
    print(f"{n_examples:,} examples, CPU seconds (median of {N_REPEATS}):\n")
    for stage, seconds in times.items():
        each = seconds / n_examples * 1e6
        print(f"{stage:34}{seconds:8.2f} s {100 * seconds / total:5.0f} % {each:7.2f} µs/example")
    print(f"\nfirst epoch: {n_examples / total:,.0f} examples/s")
    print(f"every other: {n_examples / times[EVERY_EPOCH]:,.0f} examples/s")


if __name__ == "__main__":
    main()
