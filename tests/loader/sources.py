"""Data sources and tasks that can be sent to other processes."""

import multiprocessing
import os
import signal
import sys
import time
from pathlib import Path

from thincdialog.errors import DataError
from thincdialog.messages import Message


def episode(number):
    return [Message(text=f"question {number} {turn}", labels=["yes"]) for turn in range(2)]


class Numbers:
    """Episodes that can be read by number.

    seconds: How long each read takes.
    die_at, folder: Reading episode `die_at` kills its process, once for each file `life*` in the
        folder.
    bad: The number of an episode that raises an error.
    log: A file that gets a line with the process and the number of each read.
    """

    def __init__(self, n, seconds=0.0, die_at=None, folder=None, bad=None, log=None):
        self.n, self.seconds, self.die_at = n, seconds, die_at
        self.folder, self.bad, self.log = folder, bad, log

    def __len__(self):
        return self.n

    def __getitem__(self, number):
        time.sleep(self.seconds)
        if self.log:
            with open(self.log, "a") as file:
                file.write(f"{os.getpid()} {number}\n")
        if number == self.die_at and multiprocessing.parent_process() is not None:
            for file in Path(self.folder).glob("life*"):
                file.unlink()
                os.kill(os.getpid(), signal.SIGKILL)
        if number == self.bad:
            raise DataError("numbers.txt", "is no number", 7)
        return episode(number)


class Generated:
    """The same episodes from a generator, which can only be read from the beginning."""

    def __init__(self, n, seconds=0.0):
        self.n, self.seconds = n, seconds

    def __call__(self):
        for number in range(self.n):
            time.sleep(self.seconds)
            yield episode(number)


class Broken(Numbers):
    """Raises an error in custom code."""

    def __getitem__(self, number):
        if number == 40:
            return 1 // 0
        return super().__getitem__(number)


class Modules(Numbers):
    """Returns the names of those of two packages that its process has imported."""

    def __getitem__(self, number):
        found = [name for name in ("thinc", "torch") if name in sys.modules]
        return [Message(text=f"{os.getpid()}", labels=[" ".join(found) or "none"])]


class Echo:
    """Work that returns its task and the id of the process that did it."""

    def __call__(self):
        return self.work

    def work(self, task):
        return task, os.getpid()


class Answered(Numbers):
    """Episodes of one turn, each with a different label."""

    def __getitem__(self, number):
        return [Message(text=super().__getitem__(number)[0]["text"], labels=[f"reply {number}"])]
