"""What workers of tests train, given by --code: it notes what each step learnt from, and
fails as it is told to.

HOGWILD_NOTES: the file to note in. HOGWILD_MISCHIEF: "what id", what is to happen before a
step that learns from that example ("raise", "data", "nan", "kill", "hang", "slow"), or before
it is answered in an evaluation behind the first step ("hang").
HOGWILD_END: seconds to wait for workers after a signal.
"""

import json
import os
import signal
import threading
import time
import zlib
from pathlib import Path

from thinc.api import Model

from thincdialog.agents.ranker import RankerAgent
from thincdialog.api import DataError, IterableTeacher, registry
from thincdialog.losses.ranking import RankingSoftmax
from thincdialog.messages import column
from thincdialog.training import hogwild

hogwild.END_SECONDS = float(os.environ.get("HOGWILD_END", hogwild.END_SECONDS))

if not registry.has("teachers", "tests.tiny.v1"):
    # For processes that import nothing else; a second import would put other functions, with
    # notes of their own, in the place of those that tests know.
    from tests.training import resuming  # noqa: F401


def note(**what):
    line = json.dumps({"pid": os.getpid(), "thread": threading.get_ident(), **what}) + "\n"
    file = os.open(os.environ["HOGWILD_NOTES"], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(file, line.encode())
    os.close(file)


class Noting(RankerAgent):
    step = None

    def seed(self, seed, step, microbatch):
        self.step = step
        super().seed(seed, step, microbatch)

    def train_batch(self, observations):
        ids = list(column(observations, "id"))
        what, _, which = os.environ.get("HOGWILD_MISCHIEF", "").partition(" ")
        if which in ids:
            note(mischief=what)
            if what == "raise":
                raise ValueError("out of tea")
            if what == "data":
                raise DataError("tea.jsonl", "the cup is empty", 7)
            if what == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if what == "hang":
                time.sleep(600)
        if what == "slow":
            time.sleep(0.02)
        super().train_batch(observations)
        if which in ids and what == "nan":
            self.parameters.gradients[:] = float("nan")

    def answer(self, observations):
        what, _, which = os.environ.get("HOGWILD_MISCHIEF", "").partition(" ")
        has_begun = what == "hang" and Path(os.environ["HOGWILD_NOTES"]).exists()
        if has_begun and which in column(observations, "id"):
            note(mischief=what)
            time.sleep(600)
        return super().answer(observations)

    def update(self, optimizer):
        arrays = {"values": self.parameters.values}
        for name in ("mom1", "mom2", "averages"):
            for array in (getattr(optimizer, name) or {}).values():
                arrays[name] = array
        sums = {name: zlib.crc32(array.tobytes()) for name, array in arrays.items()}
        ids = list(self.counters.ids)
        rate, b1, nu = (float(getattr(optimizer, name, 1)) for name in ("learn_rate", "b1", "nu"))
        note(step=self.step, rate=rate, b1=b1, nu=nu, ids=ids, sums=sums)
        return super().update(optimizer)


@registry.agents("tests.hogwild.v1")
def hogwild_agent(
    model: Model, candidates: str = "batch", use_reply: str = "label", max_context: int = 256
) -> Noting:
    options = {"candidates": candidates, "use_reply": use_reply, "max_context": max_context}
    return Noting(model, loss=RankingSoftmax(), **options)


@registry.teachers("tests.gaps.v1")
def gaps(n: int, mutators=None):
    """Every third example has no label; eight in a row have none, too."""

    def make():
        for number in range(n):
            has_label = number % 3 and not 8 <= number < 16
            labels = {"labels": [f"word{number % 5}"]} if has_label else {}
            yield [{"id": f"gap{number}", "text": f"say word{number % 5}", **labels}]

    return IterableTeacher(dict.fromkeys(("train", "dev", "test"), make), mutators=mutators)
