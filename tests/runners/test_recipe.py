"""The recipe from which workers make the same experiment as the run's process."""

import sys

import pytest

from tests.runners.cluster.workers_in_threads import made
from tests.training.examples import RANKER
from thincdialog.errors import DialogError
from thincdialog.ops.compiled import load_kernels
from thincdialog.runners.recipe import make_experiment, recipe_of


@pytest.fixture
def recipe():
    experiment = made(RANKER)
    assert experiment.checked.interpolated["system"]["ops"] == "auto"
    with experiment.working():
        return recipe_of(experiment, experiment.training_split())


def test_recipe_the_driver_chooses_the_ops_of_all_workers(recipe, monkeypatch):
    assert recipe.ops == "fast"
    for ops in ("fast", "numpy"):
        experiment, _ = make_experiment(recipe._replace(ops=ops), "n1")
        assert experiment.ops_name == experiment.learner.model.ops.name[12:] == ops
    monkeypatch.setitem(sys.modules, "numba", None)
    load_kernels.cache_clear()
    with pytest.raises(DialogError, match=r"'numba', which is not installed.* \(on node n1\)"):
        make_experiment(recipe, "n1")
    load_kernels.cache_clear()
