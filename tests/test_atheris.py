"""Fuzzing of the readers of configs and data: atheris finds inputs by coverage.

Needs ``pip install atheris``.
"""

import random
import re
import subprocess
import sys
import time
from collections import Counter
from importlib.util import find_spec

import pytest

from tests.config.test_damaged_configs import CONFIGS, check
from tests.formats.test_damaged_files import READERS, convert_any, read
from tests.fuzzing import ODD, SEED, TIMES

NAMES = list(READERS)
tried: Counter = Counter()


def read_config(folder, data):
    """Read the bytes as a config."""
    check(folder / "fuzzed.cfg", data)


def read_data(folder, data):
    """Read the bytes after the first with the reader that the first byte selects."""
    name = NAMES[data[0] % len(NAMES)] if data else NAMES[0]
    read(name, folder / f"fuzzed{READERS[name][1]}", data[1:])
    tried[name] += 1
    (folder / "tried").write_text("\n".join(tried))


def convert_data(folder, data):
    """Convert the bytes after the first; all bytes select the target."""
    name = NAMES[data[0] % len(NAMES)] if data else NAMES[0]
    path = folder / f"fuzzed{READERS[name][1]}"
    convert_any(path, data[1:], random.Random(data))
    path.unlink()


def raise_error(folder, data):
    """Raise an exception that a reader must not raise."""
    raise KeyError("planted")


def hang(folder, data):
    """Hang, which a reader must not do."""
    while True:
        time.sleep(0.01)


def grow(folder, data):
    """Use more memory than a reader may."""
    kept = b"x" * (3 << 30)
    time.sleep(3)
    assert kept


NUMBERED = [bytes([place]) + READERS[name][2] for place, name in enumerate(NAMES)]
FUZZ = """
import sys
from functools import partial
from pathlib import Path
root, check, folder, *options = sys.argv[1:]
sys.path.insert(0, root)
import atheris
with atheris.instrument_imports(include=["thincdialog"]):
    from tests import test_atheris
from tests.fuzzing import within_time
action = getattr(test_atheris, check)
run = lambda data: within_time(lambda: action(Path(folder), data))
atheris.Setup([sys.argv[0], *options], run)
atheris.Fuzz()
"""


def fuzz(root, folder, check, good, n_runs, seconds=60):
    """Let atheris try inputs on a check, starting from valid files. Return the finished process."""
    for name in ("corpus", "work"):
        (folder / name).mkdir()
    for place, content in enumerate(good):
        (folder / "corpus" / str(place)).write_bytes(content)
    escaped = ["".join(f"\\x{byte:02x}" for byte in odd) for odd in ODD if len(odd) <= 60]
    (folder / "dictionary").write_text("".join(f'"{word}"\n' for word in escaped))
    options = {
        "runs": n_runs, "seed": SEED, "max_total_time": 40 * TIMES, "timeout": seconds,
        "rss_limit_mb": 2048, "max_len": 16384, "dict": folder / "dictionary",
        "artifact_prefix": f"{folder}/",
    }  # fmt: skip
    return subprocess.run(
        [
            # The shell in between keeps the memory of this process from being counted for its
            # child.
            *("sh", "-c", '"$@"; exit $?', "sh"),
            *(sys.executable, "-W", "ignore", "-c", FUZZ, str(root), check, str(folder / "work")),
            *(f"-{name}={value}" for name, value in options.items()),
            str(folder / "corpus"),
        ],
        capture_output=True, text=True, errors="replace", timeout=600 + 120 * TIMES,
    )  # fmt: skip


needs_atheris = pytest.mark.skipif(not find_spec("atheris"), reason="needs pip install atheris")


@pytest.mark.slow
@needs_atheris
@pytest.mark.parametrize(
    "check, good, n_runs",
    [(read_config, CONFIGS, 300), (read_data, NUMBERED, 3000), (convert_data, NUMBERED, 1000)],
    ids=["configs", "data", "conversion"],
)
def test_fuzzed_inputs_never_crash_hang_or_fill_the_memory(
    root, tmp_path, capsys, check, good, n_runs
):
    done = fuzz(root, tmp_path, check.__name__, good, n_runs * TIMES)
    inputs = [path for path in tmp_path.iterdir() if "-" in path.name]
    assert done.returncode == 0 and not inputs, (
        done.stdout[-2000:] + done.stderr[-5000:] + "".join(str(i.read_bytes()) for i in inputs)
    )
    n_tried = int(re.search(r"Done (\d+) runs", done.stderr)[1])
    with capsys.disabled():
        sys.stdout.write(f"\n{check.__name__}: {n_tried:,} inputs tried\n")
    # There are fewer runs only if the time was up.
    assert n_tried >= len(good)
    if check is read_data:
        assert set((tmp_path / "work" / "tried").read_text().split("\n")) == set(NAMES)


@pytest.mark.slow
@needs_atheris
@pytest.mark.parametrize(
    "check, words, seconds",
    [(raise_error, "planted", 60), (hang, "timeout", 5), (grow, "out-of-memory", 60)],
    ids=["error", "hang", "memory"],
)
def test_planted_faults_are_found(root, tmp_path, check, words, seconds):
    done = fuzz(root, tmp_path, check.__name__, [b"x"], 50, seconds)
    assert done.returncode != 0 and words in done.stdout + done.stderr
