"""What tests of several commands start from."""

import shlex

import pytest

from thincdialog.cli.main import main

from .small_config import CONFIG


@pytest.fixture
def run_small(tmp_path, monkeypatch, capsys):
    """Runs a command line in a folder that holds only a small config, ``a.cfg``: gives
    the exit code, stdout and stderr."""
    (tmp_path / "a.cfg").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)

    def run_command(line):
        code = main(shlex.split(line))
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run_command
