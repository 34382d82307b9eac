"""Kills training at the points where it changes something: files, folders, locks, processes.

A program of its own: PYTHON kill_points.py FOLDER COMMAND... The first line of stdin is a number of
points, or "count"; each run is a fork of a process that has imported the package. Points are what
Python tells its audit hooks, and each process that is started.
"""

import json
import os
import signal
import sys
import time
from pathlib import Path

EVENTS = {
    "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link", "os.symlink",
    "shutil.rmtree", "fcntl.flock", "mmap.__new__",
}  # fmt: skip
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT


def point_of(event, arguments):
    """Its name, if a kill shall be tried there."""
    if event == "open":
        return event if arguments[2] & WRITES else ""
    return event if event in EVENTS else ""


def arm(points, kill_at):
    """From now on note points in a list, and die at that one (from 1)."""

    def passed(name):
        points.append(name)
        if len(points) == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)

    def hook(event, arguments):
        name = point_of(event, arguments)
        if name and os.getpid() == own:
            passed(name)

    def around(module, name):
        function = getattr(module, name)

        def call(*arguments, **named):
            passed(f"before {name}")
            given = function(*arguments, **named)
            passed(f"behind {name}")
            return given

        setattr(module, name, call)

    from multiprocessing import util

    own = os.getpid()
    sys.addaudithook(hook)
    around(os, "fsync")
    around(util, "spawnv_passfds")


def run(words, kill_at=0):
    """Train in a fork. RETURNS its process id, its exit status, and points."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        points = []
        arm(points, kill_at)
        from thincdialog.cli.main import main

        code = main(words)
        with os.fdopen(write, "w") as pipe:
            json.dump(points, pipe)
        os._exit(code)
    os.close(write)
    with os.fdopen(read) as pipe:
        told = pipe.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    return pid, status, json.loads(told) if told else []


def left_of(session):
    """Processes of a session that still run."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                facts = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            if int(facts[3]) == session and facts[0] != "Z":
                found.append(int(name))
    return found


def seconds_until_gone(session, most=20.0):
    began = time.monotonic()
    while left_of(session) and time.monotonic() - began < most:
        time.sleep(0.01)
    return time.monotonic() - began


def killed_at(words, number):
    """Kill a run at a point, and go on. RETURNS what came of it."""
    pid, status, _ = run(words, number)
    seconds = seconds_until_gone(pid)
    again = run(words)[1]
    return {"status": status, "seconds": seconds, "left": left_of(pid), "again": again}


if __name__ == "__main__":
    import thincdialog.api  # noqa: F401

    sys.path[0] = ""
    for line in sys.stdin:
        words = json.loads(line)
        number = words.pop(0)
        came = run(words)[1:] if number == 0 else killed_at(words, number)
        sys.stdout.write(json.dumps(came) + "\n")
        sys.stdout.flush()
