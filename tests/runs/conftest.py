"""A short run with checkpoints, to be copied and resumed."""

import shutil

import pytest

from tests.training.examples import quietly_train

ENDS = {"training__max_steps": 6, "training__checkpoint_every_steps": 2}


def resume(folder, **more):
    """Resume the run. RETURNS its result and the text of stderr."""
    return quietly_train(output=folder, resume=True, **{**ENDS, **more})


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Return the result of the run."""
    return quietly_train(output=tmp_path_factory.mktemp("trained") / "out", **ENDS)[0]


@pytest.fixture
def folder(trained, tmp_path):
    """Return a copy of the run's folder."""
    return shutil.copytree(trained.output, tmp_path / "out")
