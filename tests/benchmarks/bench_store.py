"""Measure stores on disk: how fast they are built and read, compared with the same data in memory.

Reading and building: made-up examples, 1,000,000 unless N sets another number, with texts of 40
words and labels of 11 on average, drawn from 20,000. Examples per CPU second, medians of 5.

Training: ranker.cfg and starspace.cfg on ../shared/data/self_dialogue (or conversations of words
drawn by Zipf's law), from a store and with the data in memory, one epoch of each in turns.
Examples per CPU second, without the first epoch of each.

Memory: N_LARGE made-up examples (10,000,000: 2 GB of texts) are built, and a ranker is trained
on them for 1,000 steps. Printed is the process's peak memory beyond its peak with 1,000 examples,
pages of the store included.

    python tests/benchmarks/bench_store.py [reading] [training] [memory]
"""

import gc
import io
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any, Dict, Iterator, List

import numpy as np
from measuring import ROOT, SMALL, cpu_seconds, first_rows, in_turns, medians, sized

from thincdialog.api import Batch, Experiment, Message, train
from thincdialog.cli.output import table
from thincdialog.data import TextEncoder
from thincdialog.data.token_writer import write_tokens
from thincdialog.data.tokenizers import WordTokenizer
from thincdialog.examples.mapped_store import MappedStore, mapped_tokens
from thincdialog.examples.memory_store import MemoryStore
from thincdialog.examples.split import SHARD_SIZE
from thincdialog.examples.store import collection_paused
from thincdialog.examples.store_writer import StoreWriter
from thincdialog.files.shard_folder import read_manifest
from thincdialog.loader.readers import Readers

N = int(os.environ.get("N", sized(1_000_000, 2_000)))
N_LARGE = int(os.environ.get("N_LARGE", sized(10_000_000, 1_000)))
N_REPEATS, N_STEPS = int(os.environ.get("N_REPEATS", sized(5, 1))), sized(1_000, 10)
N_CONVERSATIONS = 2_000
# A teacher of made-up examples, for configs.
MADE_UP = """
import random
from thincdialog.api import Message, Teacher, registry

@registry.teachers("bench.made_up.v1")
def made_up(n: int, n_dev: int = 100, streaming: bool = True):
    def episodes(n, seed):
        rng = random.Random(seed)
        words = [f"w{rng.randrange(20000)}" for _ in range(1 << 18)]
        for number in range(n):
            at = int(rng.random() * 260000)
            text, label = words[at : at + 12 + at % 24], words[at - 9 : at - at % 4]
            yield [Message(id=str(number), text=" ".join(text), labels=[" ".join(label)])]

    sources = {"train": lambda: episodes(n, 0), "dev": lambda: episodes(n_dev, 1)}
    return Teacher(sources, streaming=streaming, single_turn=True)
"""


def examples(n: int) -> Iterator[Message]:
    """Yield examples with about 40 words in the text and 11 in the label."""
    rng = random.Random(0)
    words = [f"w{rng.randrange(20_000)}" for _ in range(1 << 18)]
    for number in range(n):
        at, size = rng.randrange(260_000), rng.randint(20, 60)
        label = words[at : at + rng.randint(5, 17)]
        yield Message(
            id=str(number), text=" ".join(words[at : at + size]), labels=[" ".join(label)]
        )


class Timed(TextEncoder):
    """A text encoder that counts the seconds it spends tokenizing."""

    seconds = 0.0

    def __init__(self, tokenizer: Any):
        super().__init__(tokenizer)
        whole = self.lay_out

        def lay_out(turns: Any) -> Any:
            seconds, found = cpu_seconds(lambda: whole(turns))
            self.seconds += seconds
            return found

        self.lay_out = lay_out  # type: ignore[assignment]


def reading(folder: Path) -> None:
    tokenizer = WordTokenizer()
    tokenizer.build(f"w{number}" for number in range(20_000))
    writer, made, seconds = StoreWriter(folder / "examples", None), iter(examples(N)), 0.0
    while True:
        shard = MemoryStore(is_held=False)
        with collection_paused():
            for message in islice(made, SHARD_SIZE):
                shard.append([message])
        if not shard.n_episodes:
            break
        seconds += cpu_seconds(lambda: writer.add(shard, None))[0]  # noqa: B023
    seconds += cpu_seconds(lambda: writer.finish({}))[0]
    writer.files.close()
    store = MappedStore(folder / "examples", read_manifest(folder / "examples") or {})
    encoder = Timed(tokenizer)
    carry_out = Readers(0).carry_out
    whole, _ = cpu_seconds(lambda: write_tokens(store, encoder, folder / "tokens", None, carry_out))
    n_tokens = (read_manifest(folder / "tokens") or {})["tokens"]
    size = {name: sum(f.stat().st_size for f in (folder / name).iterdir()) for name in
            ("examples", "tokens")}  # fmt: skip
    rows = [
        [f"{N:,} examples, {n_tokens:,} tokens", "examples/CPU-second", "bytes/example"],
        ["examples to disk, once read", f"{N / seconds:,.0f}", f"{size['examples'] / N:,.0f}"],
        ["tokens to disk, once tokenized", f"{N / (whole - encoder.seconds):,.0f}",
         f"{size['tokens'] / N:,.0f}"],
        ["(tokenizing itself)", f"{N / encoder.seconds:,.0f}", ""],
    ]  # fmt: skip
    print(table(rows))
    seconds, tokens = cpu_seconds(lambda: mapped_tokens(folder / "tokens", store, tokenizer.n_ids))
    print(f"opened, with a check for numbers out of range: {seconds:.2f} CPU-seconds\n")
    store.tokens[str(encoder.key)] = tokens
    encoder = TextEncoder(tokenizer, max_context=0, max_label=0)
    in_order = np.arange(N)
    drawn = np.random.default_rng(1).permutation(N)
    ways = {
        "slices, in order": (slices, in_order, 0),
        "slices, drawn": (slices, drawn, 0),
        "batches of 64, in order": (batches, in_order, 64),
        "batches of 64, drawn": (batches, drawn, 64),
        "batches of 4,096, in order": (batches, in_order, 4096),
        "batches of 4,096, drawn": (batches, drawn, 4096),
    }

    def measure(name: str) -> float:
        read, rows, size = ways[name]
        return N / cpu_seconds(lambda: read(store, encoder, rows, size))[0]

    found = medians(in_turns(ways, measure, N_REPEATS))
    rows = [["ready token ids", "examples/CPU-second"]]
    print(table(rows + [[name, f"{value:,.0f}"] for name, value in found.items()]) + "\n")


def slices(store: MappedStore, encoder: TextEncoder, rows: np.ndarray, size: int) -> None:
    """Read both texts of each example, one by one, as views."""
    (tokens,) = store.tokens.values()
    bounds, turns, entries, ids = tokens[:4]
    starts, lengths = entries[0], entries[1]
    label_ids, total = store.label_ids, 0
    for row in rows.tolist():
        for entry in (turns.item(bounds.item(row)), label_ids.item(row)):
            first = starts.item(entry)
            total += len(ids[first : first + lengths.item(entry)])


def batches(store: MappedStore, encoder: TextEncoder, rows: np.ndarray, size: int) -> None:
    """Read as a training step does: texts packed, labels numbered."""
    for start in range(0, len(rows), size):
        encoder.pack(Batch(store, rows[start : start + size]))


# --- training -----------------------------------------------------------------------------


class Training:
    """A config's training, one epoch at a time.

    store (str): Where its store is, or is built; "" to hold the data in memory.
    """

    def __init__(self, folder: Path, config: str, store: str):
        changes: Dict[str, Any] = {
            "paths.train": str(folder / "train.jsonl"),
            "loader.store": store or None,
            **SMALL,
        }
        self.experiment = Experiment.from_config(ROOT / "configs" / config, changes)
        silent, self.n_epochs = io.StringIO(), 0
        with self.experiment.working():
            self.experiment.use_examples(silent)
            self.teacher = self.experiment.training_split(with_metrics=False)
            self.experiment.initialize(self.teacher, silent)
            self.experiment.use_tokens(silent)
            self.world = self.experiment.make_world(self.teacher, self.experiment.learner)

    def epoch(self) -> float:
        """Train the next epoch. Return its examples per CPU second."""
        with self.experiment.working():
            self.world.start_epoch(self.n_epochs, 0)
            self.n_epochs += 1
            started = time.process_time()
            while not self.world.epoch_done():
                self.world.parley()
                self.experiment.learner.update(self.experiment.optimizer)
            return float(self.teacher.n_examples or 0) / (time.process_time() - started)


def training(folder: Path) -> None:
    with (folder / "train.jsonl").open("w", encoding="utf8") as file:
        for row in first_rows("self_dialogue/train.jsonl.gz", N_CONVERSATIONS):
            file.write(json.dumps(row) + "\n")
    rows = [["after the first epoch, examples/CPU-second", "held", "from a store", "ratio"]]
    for config in sized(("ranker.cfg", "starspace.cfg"), ("ranker.cfg",)):
        stores = {"held": "", "store": str(folder / config)}
        ways = {name: Training(folder, config, store) for name, store in stores.items()}
        for way in ways.values():
            way.epoch()
        gc.freeze()  # Garbage collection of one training does not search the objects of the other.
        found = in_turns(ways, lambda name: ways[name].epoch(), N_REPEATS)  # noqa: B023
        ratio = median(stored / held for held, stored in zip(found["held"], found["store"]))
        held, stored = medians(found).values()
        rows.append([config, f"{held:,.0f}", f"{stored:,.0f}", f"{ratio:.3f}"])
    print(table(rows) + "\n")


# --- memory -------------------------------------------------------------------------------


def trained(folder: Path, n: int, n_steps: int, window: int) -> Dict[str, Any]:
    """Build, then train, in this process. Return the seconds and the peak memory of both."""
    code = folder / "made_up.py"
    code.write_text(MADE_UP)
    text = (ROOT / "configs" / "ranker.cfg").read_text()
    task = f'[tasks.dialogue]\n@teachers = "bench.made_up.v1"\nn = {n}\n\n'
    text = text[: text.index("[tasks")] + task + text[text.index("[tokenizer]") :]
    changes = {
        "training.max_steps": n_steps,
        "training.max_epochs": 0,
        "training.eval_every_epochs": 0,
        "loader.store": str(folder / f"store{n}"),
        "loader.shuffle_window": window,
        **SMALL,
    }
    started = time.monotonic()
    train(text, overrides=changes, code=code, stdout=io.StringIO(), stderr=sys.stderr)
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"seconds": time.monotonic() - started, "MB": most}


def memory(folder: Path) -> None:
    rows = [["", "seconds", "MB at most"]]
    least = 0.0
    for n, n_steps, window, what in (
        (1_000, min(100, N_STEPS), 65_536, "1,000 examples"),
        (N_LARGE, 1, 65_536, f"{N_LARGE:,} examples: built"),
        (N_LARGE, N_STEPS, 65_536, f"{N_STEPS:,} steps, window of 65,536"),
        (N_LARGE, N_STEPS, 0, f"{N_STEPS:,} steps, all shuffled"),
    )[: sized(4, 1)]:
        words = ["memory_of", str(folder), str(n), str(n_steps), str(window)]
        out = subprocess.run([sys.executable, __file__, *words], stdout=-1, check=True).stdout
        found = json.loads(out.decode().splitlines()[-1])
        least = least or found["MB"]
        rows.append([what, f"{found['seconds']:,.0f}", f"{found['MB']:,.0f}"])
        rows[-1][-1] += f" (+{found['MB'] - least:,.0f})"
        print(*rows[-1], sep="  ", file=sys.stderr)
    size = sum(p.stat().st_size for p in (folder / f"store{N_LARGE}").rglob("*") if p.is_file())
    print(table(rows) + f"\n{size / 1e9:.1f} GB on disk")


def main(words: List[str]) -> None:
    if words[:1] == ["memory_of"]:
        print(json.dumps(trained(Path(words[1]), *map(int, words[2:]))))
        return
    with tempfile.TemporaryDirectory(prefix="bench_store-") as name:
        for part in (reading, training, memory):
            if not words or part.__name__ in words:
                part(Path(name))


if __name__ == "__main__":
    main(sys.argv[1:])
