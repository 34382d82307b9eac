"""Fixtures that several commands' tests use."""

import shlex

import pytest

from tests.training.examples import RANKER
from thincdialog.cli.main import main
from thincdialog.config import shipped_configs

CONFIG = RANKER.replace("n_train = 34", "n_train = 60").replace('"inline"', '"batch"')
CONFIG = CONFIG.replace("dropout = 0.2\n", "")
# Overrides for the coffee task: just enough data to show that a command works.
SMALL = (
    "--tasks.coffee.n_train 40 --tasks.coffee.n_dev 10 --tasks.coffee.n_test 10 "
    "--training.max_epochs 2 --agent.model.encoder.width 8"
)


@pytest.fixture
def run(capsys):
    """Return a function that runs a command line. It returns the exit code, stdout and stderr."""

    def run_command(line):
        code = main(shlex.split(line))
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return run_command


@pytest.fixture
def run_small(run, tmp_path, monkeypatch):
    """Return the same function for a folder that contains only a small config, ``a.cfg``."""
    (tmp_path / "a.cfg").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)
    return run


@pytest.fixture(scope="session")
def runs(tmp_path_factory):
    """Return a folder with ``quickstart.cfg``, two runs of it, ``0.001`` and ``0.01`` (their
    learning rates), and ``bad.cfg``, which has a mistake."""
    folder = tmp_path_factory.mktemp("runs")
    text = shipped_configs()["quickstart"].read_text()
    (folder / "quickstart.cfg").write_text(text)
    (folder / "bad.cfg").write_text(text.replace("max_epochs", "max_epokhs"))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for rate in ("0.001", "0.01"):
            options = f"-o {rate} --training.optimizer.learn_rate {rate} --training.n_samples 0"
            assert main(f"train quickstart.cfg {SMALL} {options}".split()) == 0
    return folder
