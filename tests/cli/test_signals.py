"""Signals at the start and the end of a command: one line, an exit code, no traceback."""

import os
import signal
import subprocess
import sys
import time

import pytest

from tests.processes import slow
from tests.training.examples import RANKER

# Sends the command a signal while it imports a module, or after its end.
SENDING = """
import atexit, os, signal, sys

def send(*_):
    os.kill(os.getpid(), getattr(signal, os.environ["SIGNAL"]))

class Finder:
    def find_spec(self, name, *_):
        if name == os.environ["MOMENT"]:
            send()

if os.environ["MOMENT"] == "end":
    atexit.register(send)
sys.meta_path.insert(0, Finder())
"""


def handling_hangups():
    """Handle SIGHUP as in a terminal; tests may have been started with nohup."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.mark.parametrize(
    "name, moment",
    [
        ("SIGINT", "thinc"),
        ("SIGTERM", "thincdialog.cli.main"),
        ("SIGHUP", "numpy"),
        slow("SIGTERM", "thincdialog.runners.hogwild"),
        slow("SIGHUP", "end"),
    ],
)
def test_signals_at_the_edges_of_a_command(tmp_path, name, moment):
    (tmp_path / "config.cfg").write_text(RANKER)
    (tmp_path / "sitecustomize.py").write_text(SENDING)
    env = {**os.environ, "SIGNAL": name, "MOMENT": moment}
    env["PYTHONPATH"] = ":".join([str(tmp_path), *sys.path])
    words = ["debug", "config"] if moment == "end" else ["train"]
    command = [sys.executable, "-m", "thincdialog", *words, "config.cfg"]
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, preexec_fn=handling_hangups
    )
    shown = done.stderr.strip().splitlines()
    if moment == "end":
        assert done.returncode == 0, shown
    else:
        assert done.returncode == 128 + getattr(signal, name) and len(shown) == 1, shown
        assert "⚠ Interrupted" in shown[0] or "[!] Interrupted" in shown[0]


@pytest.mark.slow
def test_signals_of_a_terminal_that_closes_save_the_run(tmp_path):
    """SIGHUP is sent, and stdout and stderr are closed."""
    import pty

    (tmp_path / "config.cfg").write_text(RANKER.replace("max_epochs = 2.0", "max_epochs = 5000.0"))
    pid, terminal = pty.fork()
    if not pid:
        os.chdir(tmp_path)
        os.environ["PYTHONPATH"] = ":".join(sys.path)
        words = "-m thincdialog train config.cfg -o out --training.checkpoint_every_steps 5"
        os.execv(sys.executable, [sys.executable, *words.split()])
    until = time.monotonic() + 120
    while not list((tmp_path).glob("out/checkpoint-1?")) and time.monotonic() < until:
        os.read(terminal, 4096)
    os.close(terminal)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == 75
    assert not list((tmp_path / "out").glob(".*"))
    assert (tmp_path / "out" / "model-last" / "weights.npy").exists()
