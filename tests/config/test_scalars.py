"""Any value in a config: everything can be built, or one line says what is wrong."""

import copy
import io
import json
import random

import pytest

from tests.fuzzing import SEED, TIMES
from tests.processes import little_memory, no_longer_than, slow
from thincdialog.api import ConfigError, DialogError, Experiment, check_config, train
from thincdialog.config import load_code, load_config, shipped_configs

ODD = {
    "null": None, "list": [], "list of null": [None], "list of sections": [{}], "section": {"a": 1},
    "ops": {"@ops": "thincdialog_cupy"}, "layer": {"@layers": "Linear.v1"}, "nan": float("nan"),
    "infinite": float("inf"), "largest": 2**63 - 1, "smallest": -(2**63), "beyond": 2**70,
    "huge": 1e308, "tiny": 5e-324, "true": True, "empty": "",
    "negative": -1, "zero": 0, "text": "x",
}  # fmt: skip
SMALL = {
    "tasks.coffee.n_train": 12, "tasks.coffee.n_dev": 4, "tasks.coffee.n_test": 4,
    "tokenizer.n_rows": 500, "agent.model.encoder.width": 8, "training.max_steps": 2,
}  # fmt: skip
# Without these limits, training with the largest values would never end.
ENDS = ("training.max_steps", "tasks.coffee.n_train", "tasks.coffee.n_dev", "tasks.coffee.n_test")


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Some odd values are relative paths."""
    monkeypatch.chdir(tmp_path)


def places(section, *path):
    for key, value in section.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from places(value, *path, key)


def put(config, path, value):
    config = copy.deepcopy(config)
    node = config
    for key in path[:-1]:
        node = node[key]
    node[path[-1]] = copy.deepcopy(value)
    return config


def whole(name, overrides=None):
    """Return a bundled config with all defaults written out."""
    code = shipped_configs()[name].with_suffix(".py")
    if code.is_file():
        load_code(code)
    return json.loads(json.dumps(load_config(shipped_configs()[name], overrides or {}).config))


def try_value(config, path, name, trains=False):
    """RETURNS whether the value is refused."""
    changed = put(config, path, ODD[name])
    try:
        with no_longer_than(60), little_memory(2 << 30):
            problems = check_config(changed)
            assert all(str(problem).count("\n") == 0 for problem in problems)
            if not problems and trains and ".".join(path) not in ENDS:
                train(changed, stdout=io.StringIO(), stderr=io.StringIO())
            elif not problems:
                Experiment.from_config(changed)
    except DialogError as error:
        assert len(str(error)) < 20_000
        return True
    except BaseException as error:
        raise AssertionError(f"{'.'.join(path)} = {name}: {error!r}") from error
    return bool(problems)


def try_some(name, chance, n, trains):
    config = whole(name, SMALL if trains else None)
    cases = [(path, odd) for path in places(config) for odd in ODD]
    chosen = chance.sample(cases, min(n, len(cases)))
    return sum(try_value(config, *each, trains) for each in chosen)


def test_scalars_that_are_odd_are_refused_or_build():
    assert try_some("quickstart", random.Random(0), 60, False) > 40


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(shipped_configs()))
def test_scalars_of_every_config_are_refused_or_build(name):
    """Tries most values of the quickstart, and a few of the other configs, whose settings are
    mostly the same."""
    if "torch" in name:
        pytest.importorskip("torch")
    n = (500 if name == "quickstart" else 75) * TIMES
    assert try_some(name, random.Random(SEED), n, False) > n / 10


@pytest.mark.parametrize("seed, n", [(0, 40), slow(SEED, 400 * TIMES)])
@pytest.mark.filterwarnings("ignore")
def test_scalars_that_are_odd_are_refused_or_train(seed, n):
    assert try_some("quickstart", random.Random(seed), n, True) > n / 5


REFUSED = {
    "training.optimizer.learn_rate": (["null"], "a list of one number or more"),
    "agent.model.encoder.depth": ("largest", "must be 0 to 1,000"),
    "agent.max_context": ("negative", "max_context = -1, expected"),
    "agent.loss": ("layer", "loss is the layer 'linear'"),
    "training.max_epochs": ("infinite", "should be a number, 0 or more, got Infinity"),
    "evaluation.metrics": ("null", "should be a section"),
    "training.optimizer": ("null", "should be a section"),
    "training.logger": ("null", "should be a section"),
    "tasks.coffee.n_dev": ("largest", "give 1 to 10,000,000"),
    "agent.history_size": ("ops", "no section is built by '@ops'"),
}


@pytest.mark.parametrize("place", REFUSED)
def test_scalars_named_are_refused_with_their_section(place):
    odd, words = REFUSED[place]
    odd = "list of null" if odd == ["null"] else odd
    config = put(whole("quickstart"), tuple(place.split(".")), ODD[odd])
    with pytest.raises(ConfigError, match=words):
        Experiment.from_config(config)


def test_scalars_paths_and_overrides_build_nothing():
    config = whole("quickstart")
    config["paths"] = {"@train": None}
    assert "[paths] builds nothing, got '@train'" in str(check_config(config)[0])
    problem = str(check_config(whole("quickstart"), {".".join(["a"] * 5000): 1})[0])
    assert "nested too deep" in problem and len(problem) < 300


def test_scalars_of_callbacks_may_be_null():
    config = whole("quickstart")
    config["training"]["callbacks"] = None
    assert Experiment.from_config(config).training["callbacks"] == []
