"""What workers of tests train, given by --code: it notes what each step learnt from, and
fails as it is told to.

NOTES: the file to note in. MISCHIEF: "what id", what is to happen before a step that learns from
that example ("raise", "data", "nan", "hang", "slow"), or before it is answered in an evaluation
behind the first step ("hang"); or "queue": no worker makes a step while another does.
HELPED: readers have help from the first example on, and it is noted there.
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
    # For processes that import nothing else; a second import would put other functions, with
    # notes of their own, in the place of those that tests know.
    from tests.runners import resuming  # noqa: F401


def note(**what):
    who = {"pid": os.getpid(), "thread": threading.current_thread().name}
    line = json.dumps({**who, **what}) + "\n"
    file = os.open(os.environ["NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())
    os.close(file)


def helped_at_once():
    """Others help to read from now on, however fast that is; notes who."""

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
    """Till it is forgotten what was to happen."""
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
            self.turn.close()  # Lets the next one in.
        return report


@registry.agents("tests.hogwild.v1")
def hogwild_agent(
    model: Model, candidates: str = "batch", use_reply: str = "label", max_context: int = 256
) -> Noting:
    options = {"candidates": candidates, "use_reply": use_reply, "max_context": max_context}
    return Noting(model, loss=RankingSoftmax(), **options)


@registry.runners("tests.impatient.v1")
def impatient(workers: int = 2, executor: Literal["thread", "process"] = "thread") -> Hogwild:
    """It waits 2 seconds for workers after a signal."""
    return Hogwild(workers, executor, end_seconds=2.0)


@registry.teachers("tests.gaps.v1")
def gaps(n: int, mutators=None):
    """Every third example has no label; eight in a row have none, too."""

    def make():
        for number in range(n):
            has_label = number % 3 and not 8 <= number < 16
            labels = {"labels": [f"word{number % 5}"]} if has_label else {}
            yield [{"id": f"gap{number}", "text": f"say word{number % 5}", **labels}]

    return IterableTeacher(dict.fromkeys(("train", "dev", "test"), make), mutators=mutators)
