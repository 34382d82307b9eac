"""The command line starts fast: it imports NumPy and Thinc only if a command needs them."""

import json
import os
import subprocess
import sys

import pytest

from tests.training.examples import RANKER
from thincdialog import __version__
from thincdialog.cli.main import COMMANDS

HEAVY = ("numpy", "thinc", "confection", "catalogue", "cupy", "torch", "spacy", "tqdm", "srsly")
HOGWILD = (
    RANKER.replace("[training]", "[training]\nmax_steps = 4").replace("inline", "batch")
    + """
[runner]
@runners = "thincdialog.Hogwild.v1"
workers = 1
executor = "process"
"""
)
HELP = {name: [*name.split(), "--help"] for name in ("", *COMMANDS)}
MISTAKES = {
    "train": "the following arguments are required: CONFIG",
    "trian x.cfg": "did you mean 'train'?",
    "train x.cfg --max_steps 3": "did you mean --training.max_steps?",
    "info --training.max_steps 3": "this command does not accept settings",
}
# Runs each command line. Prints its exit code and output, and the modules imported so far.
CODE = """
import contextlib, io, json, sys
from thincdialog.cli.main import main
for arguments in json.loads(sys.argv[1]):
    with contextlib.redirect_stdout(io.StringIO()) as out:
        with contextlib.redirect_stderr(io.StringIO()) as err:
            code = main(arguments)
    print(json.dumps([code, out.getvalue(), err.getvalue(), list(sys.modules)]))
"""


def test_startup_help_and_usage_errors_import_nothing_heavy(root):
    lines = [*HELP.values(), *map(str.split, MISTAKES), ["--version"]]
    command = [sys.executable, "-c", CODE, json.dumps(lines)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    for arguments, (*_, modules) in zip(lines, found):
        assert not set(HEAVY) & set(modules), arguments
    for name, (code, out, err, _) in zip(HELP, found):
        assert (code, err) == (0, "") and out.startswith("usage: "), name
        words = [f"\nexamples:\n  python -m thincdialog {name}"] if name else COMMANDS
        assert all(word in out for word in words), name
    for words, (code, out, err, _) in zip(MISTAKES.values(), found[len(HELP) :]):
        assert (code, out) == (2, "") and words in err and "Traceback" not in err
    assert found[-1][:3] == [0, f"{__version__}\n", ""]


@pytest.mark.slow
def test_startup_imports_nothing_from_the_current_folder(root, tmp_path):
    """Nothing except the modules that Python itself imports to find the package: see
    docs/security.md."""
    look = [sys.executable, "-c", "import runpy, sys; print(*sys.modules)"]
    pythons = subprocess.run(look, capture_output=True, text=True, check=True).stdout.split()
    for name in {*sys.stdlib_module_names, *HEAVY, "sitecustomize"} - set(pythons):
        (tmp_path / f"{name}.py").write_text(f"raise SystemExit('a stranger has run {name}')")
    (tmp_path / "a.cfg").write_text(HOGWILD)
    command = [sys.executable, "-m", "thincdialog", "train", "a.cfg", "-o", "run"]
    given = {**os.environ, "PYTHONPATH": str(root)}
    done = subprocess.run(
        command, cwd=tmp_path, env=given, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0 and "stranger" not in done.stderr, done.stderr
