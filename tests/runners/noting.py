"""Functions for tests of workers, loaded by --code. The agent notes the examples of each step, and
fails on demand. Environment variables control it:

NOTES: Path of the file with the notes.
MISCHIEF: "raise ID", "data ID", "nan ID" or "hang ID": the failure of a step that trains on this
    example; "hang ID" also applies to its evaluation after the first step. "slow -": all steps are
    slow. "queue": only one worker at a time makes a step.
HELPED: Path of a file. If it is set, readers have help from the first example on, and note the kind
    of help in the file.
"""

import fcntl
import json
import multiprocessing
import os
import threading
import time
import zlib
from pathlib import Path
from typing import Literal

from thinc.api import Model

from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import DataError, IterableTeacher, registry
from thincdialog.loader import readers
from thincdialog.loader.pool import Job
from thincdialog.losses.ranking import RankingSoftmax
from thincdialog.messages import column
from thincdialog.runners.hogwild import Hogwild

if not registry.has("teachers", "tests.tiny.v1"):
    # For processes that import nothing else. A second import would replace the registered
    # functions by others, whose notes the tests do not see.
    from tests.runners import resuming  # noqa: F401


def note(**what):
    who = {"pid": os.getpid(), "thread": threading.current_thread().name}
    line = json.dumps({**who, **what}) + "\n"
    file = os.open(os.environ["NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())
    os.close(file)


def helped_at_once():
    """From now on, have helpers read data however fast reading is, and note their kind."""

    class Noted(Job):
        def __init__(self, pool, *given, **more):
            with open(os.environ["HELPED"], "a") as file:
                file.write("processes\n" if pool.start_method else "threads\n")
            super().__init__(pool, *given, **more)

    readers.LOOK_SECONDS = readers.WORTH_SECONDS = -1.0
    readers.Job = Noted


if "HELPED" in os.environ and multiprocessing.parent_process() is not None:
    helped_at_once()


def hang():
    """Wait until MISCHIEF is empty, at most 100 seconds."""
    until = time.monotonic() + 100
    while os.environ["MISCHIEF"] and time.monotonic() < until:
        time.sleep(0.05)


class Noting(RankerAgent):
    step = turn = None

    def begin_microbatch(self, seed, step, number):
        self.step = step
        super().begin_microbatch(seed, step, number)

    def learn(self, batch):
        ids = list(column(batch, "id"))
        what, _, which = os.environ.get("MISCHIEF", "").partition(" ")
        if which in ids:
            note(mischief=what)
            if what == "raise":
                raise ValueError("out of tea")
            if what == "data":
                raise DataError("tea.jsonl", "the cup is empty", 7)
            if what == "hang":
                hang()
        if what == "slow":
            time.sleep(0.02)
        if what == "queue":
            self.turn = open(os.environ["NOTES"], "a")
            fcntl.flock(self.turn, fcntl.LOCK_EX)
        super().learn(batch)
        if which in ids and what == "nan":
            self.parameters.gradients[:] = float("nan")

    def answer(self, batch):
        what, _, which = os.environ.get("MISCHIEF", "").partition(" ")
        has_begun = what == "hang" and Path(os.environ["NOTES"]).exists()
        if has_begun and which in column(batch, "id"):
            note(mischief=what)
            hang()
        return super().answer(batch)

    def update(self, optimizer):
        arrays = {"values": self.parameters.values}
        for name in ("mom1", "mom2", "averages"):
            for array in (getattr(optimizer, name) or {}).values():
                arrays[name] = array
        sums = {name: zlib.crc32(array.tobytes()) for name, array in arrays.items()}
        rate, b1, nu = (float(getattr(optimizer, name, 1)) for name in ("learn_rate", "b1", "nu"))
        if self.tally.examples:
            ids = list(self.tally.ids)
            note(step=self.step, rate=rate, b1=b1, nu=nu, ids=ids, sums=sums)
        report = super().update(optimizer)
        if self.turn is not None:
            self.turn.close()  # Lets the next worker make a step.
        return report


@registry.agents("tests.hogwild.v1")
def hogwild_agent(
    model: Model, candidates: str = "batch", use_reply: str = "label", max_context: int = 256
) -> Noting:
    options = {"candidates": candidates, "use_reply": use_reply, "max_context": max_context}
    return Noting(model, loss=RankingSoftmax(), **options)


@registry.runners("tests.impatient.v1")
def impatient(workers: int = 2, executor: Literal["thread", "process"] = "thread") -> Hogwild:
    """Return a runner that waits only 2 seconds for workers after a signal."""
    return Hogwild(workers, executor, end_seconds=2.0)


@registry.teachers("tests.gaps.v1")
def gaps(n: int, mutators=None):
    """Return a teacher without labels for every third example and for eight consecutive ones."""

    def make():
        for number in range(n):
            has_label = number % 3 and not 8 <= number < 16
            labels = {"labels": [f"word{number % 5}"]} if has_label else {}
            yield [{"id": f"gap{number}", "text": f"say word{number % 5}", **labels}]

    return IterableTeacher(dict.fromkeys(("train", "dev", "test"), make), mutators=mutators)
