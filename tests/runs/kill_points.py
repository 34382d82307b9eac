"""Kills training at the points where it changes files, folders, locks or processes.

This is a separate program. Each line of stdin is a JSON list: the number of a point (0: do not
kill, list the points) and the words of a command line. Each run is a fork of a process that has
imported the package. Points are the events of Python's audit hooks, and each start of a process.
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
    """Return the name of the point, or "" if no kill is to be tried there."""
    if event == "open":
        return event if isinstance(arguments[0], str) and arguments[2] & WRITES else ""
    return event if event in EVENTS else ""


def arm(points, kill_at):
    """From now on append each point to a list, and kill this process at that one (counted from
    1)."""

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
        passed("after a process")
        return given

    from multiprocessing import popen_spawn_posix

    real_launch = popen_spawn_posix.Popen._launch
    popen_spawn_posix.Popen._launch = launch
    os.fsync = lambda handle: None  # Nothing here has to survive a power failure.
    own = os.getpid()
    sys.addaudithook(hook)


def run(words, kill_at=0):
    """Train in a fork. RETURNS its process id, its exit status, and the points."""
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
    """Return the processes of a session that are still running."""
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
    """Kill a run at a point, and resume it. RETURNS the status of both, and how the killed run
    ended."""
    pid, status, _ = run(words, number)
    seconds, shown = seconds_until_gone(pid), Path("shown").read_text()
    return {"status": status, "seconds": seconds, "shown": shown, "again": run(words)[1]}


if __name__ == "__main__":
    import thincdialog.api  # noqa: F401

    # Replaces this file's folder, which is missing if Python runs in safe-path mode.
    sys.path[: not getattr(sys.flags, "safe_path", False)] = [""]
    for line in sys.stdin:
        words = json.loads(line)
        number = words.pop(0)
        came = run(words)[1:] if number == 0 else killed_at(words, number)
        sys.stdout.write(json.dumps(came) + "\n")
        sys.stdout.flush()
