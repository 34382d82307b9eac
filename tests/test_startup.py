"""The command line answers at once: NumPy and Thinc wait until a command needs them."""

import subprocess
import sys

import pytest

from thincdialog.cli.main import COMMANDS

HEAVY = ("numpy", "thinc", "confection", "catalogue", "cupy", "torch", "spacy", "tqdm", "srsly")
CODE = """
import sys
from thincdialog.cli.main import main
code = main({arguments!r})
heavy = [name for name in {heavy!r} if name in sys.modules]
assert not heavy, f"imported: {{heavy}}"
sys.exit(code)
"""


def run(arguments, root):
    code = CODE.format(arguments=arguments, heavy=HEAVY)
    return subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("name", ["", *COMMANDS])
def test_startup_help_imports_nothing_heavy(name, root):
    done = run([*name.split(), "--help"], root)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert done.stdout.startswith("usage: ")
    if name:
        assert f"\nexamples:\n  python -m thincdialog {name}" in done.stdout
    else:
        assert all(command in done.stdout for command in COMMANDS)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (["train"], "the following arguments are required: CONFIG"),
        (["trian", "x.cfg"], "did you mean 'train'?"),
        (["train", "x.cfg", "--max_steps", "3"], "did you mean --training.max_steps?"),
        (["info", "--training.max_steps", "3"], "this command changes no settings"),
    ],
)
def test_startup_usage_errors_import_nothing_heavy(arguments, words, root):
    done = run(arguments, root)
    assert done.returncode == 2
    assert words in done.stderr and "Traceback" not in done.stderr and done.stdout == ""


def test_startup_version(root):
    from thincdialog import __version__

    assert run(["--version"], root).stdout == f"{__version__}\n"
