"""Kills training at the points where it changes something: files, folders, locks, processes.

A program of its own: each line of stdin is a JSON list, the number of a point (0: none, tell which
there are) and the words of a command line; each run is a fork of a process that has imported the
package. Points are what Python tells its audit hooks, and each process that is started.
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
        return event if isinstance(arguments[0], str) and arguments[2] & WRITES else ""
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

    def launch(process, *arguments):
        passed("before a process")
        given = real_launch(process, *arguments)
        passed("behind a process")
        return given

    from multiprocessing import popen_spawn_posix

    real_launch = popen_spawn_posix.Popen._launch
    popen_spawn_posix.Popen._launch = launch
    os.fsync = lambda handle: None  # Nothing here has to outlive a power cut.
    own = os.getpid()
    sys.addaudithook(hook)


def run(words, kill_at=0):
    """Train in a fork. RETURNS its process id, its exit status, and points."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(os.open("shown", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
        points: list = []
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


def seconds_until_gone(session, most=80.0):
    began = time.monotonic()
    while left_of(session) and time.monotonic() - began < most:
        time.sleep(0.01)
    return time.monotonic() - began


def killed_at(words, number):
    """Kill a run at a point, and go on. RETURNS what came of it."""
    pid, status, _ = run(words, number)
    seconds, shown = seconds_until_gone(pid), Path("shown").read_text()
    return {"status": status, "seconds": seconds, "shown": shown, "again": run(words)[1]}


if __name__ == "__main__":
    import thincdialog.api  # noqa: F401

    # In the place of this file's folder, which is not there if all of Python's are to be safe.
    sys.path[: not getattr(sys.flags, "safe_path", False)] = [""]
    for line in sys.stdin:
        words = json.loads(line)
        number = words.pop(0)
        came = run(words)[1:] if number == 0 else killed_at(words, number)
        sys.stdout.write(json.dumps(came) + "\n")
        sys.stdout.flush()
