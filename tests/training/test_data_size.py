"""The values that "auto" gets for a size of the training data."""

import json

import pytest

from tests.training.examples import RANKER, quietly_train, weights
from thincdialog.api import load_config
from thincdialog.training.data_size import chosen_settings, left_to_size

AUTO = RANKER.replace("size = 16", 'size = "auto"').replace(
    "[training]\n", '[training]\nmin_steps = "auto"\n'
)
SIZE, STEPS = "world.batcher.size", "training.min_steps"


def slow_size(n_examples, full):
    """Halve the size until an epoch has 32 batches, but not below 32."""
    size = full
    while size > 32 and n_examples / size < 32:
        size /= 2
    return size


@pytest.mark.parametrize(("has_classes", "full"), [(True, 128), (False, 512)])
def test_batches_are_halved_until_an_epoch_has_enough(has_classes, full):
    names = left_to_size(load_config(AUTO).interpolated)
    for n in (*range(0, 20_000, 13), 1024, 2048, 4096, 8192, 16_384, 10**9):
        assert chosen_settings(names, n, has_classes) == {
            SIZE: slow_size(n, full), STEPS: 1000 if has_classes else 0,
        }  # fmt: skip
    assert chosen_settings(names, None, has_classes)[SIZE] == full


def test_a_given_number_is_kept():
    assert left_to_size(load_config(AUTO, {SIZE: 7}).interpolated) == [STEPS]
    assert chosen_settings([STEPS], 100, True) == {STEPS: 1000}
    assert left_to_size(load_config(RANKER).interpolated) == []


def test_auto_trains_as_its_numbers_do_and_says_them(tmp_path):
    """The weights are those of a run with the numbers, which are in the first line and in
    meta.json. config.cfg keeps "auto"."""
    given = {SIZE.replace(".", "__"): 32, STEPS.replace(".", "__"): 0}
    ends = {"training__max_steps": 12}
    _, shown = quietly_train(AUTO, tmp_path / "auto", **ends)
    _, plain = quietly_train(AUTO, tmp_path / "numbers", **ends, **given)
    assert weights(tmp_path / "auto") == weights(tmp_path / "numbers")
    numbers = f", {SIZE} = 32, {STEPS} = 0."
    assert numbers in shown and numbers not in plain
    meta, other = (
        json.loads((tmp_path / name / "model-best/meta.json").read_text())
        for name in ("auto", "numbers")
    )
    assert meta["auto"] == {SIZE: 32, STEPS: 0} and "auto" not in other
    assert 'size = "auto"' in (tmp_path / "auto/model-best/config.cfg").read_text()


@pytest.mark.slow
def test_a_run_that_ends_while_dev_improves_says_how_to_continue(tmp_path):
    _, shown = quietly_train(RANKER, tmp_path / "out", training__max_steps=3)
    line = "hits@1 on dev was still improving at the end. To continue, set [training] max_steps = 6"
    assert f"{line} with --resume." in shown
    result, shown = quietly_train(RANKER, tmp_path / "out", resume=True, training__max_steps=200,
                                  training__max_epochs=60.0)  # fmt: skip
    assert result.best_step < 200 and "still improving" not in shown
