"""Tables of runs: their results, their order, and the settings in which they differ."""

import json

import pytest

from tests.training.examples import RANKER, quietly_train
from thincdialog.api import results
from thincdialog.errors import ModelError
from thincdialog.runs.run_log import RunLog

WIDTH = "agent.model.encoder.width"


def run(folder, **overrides):
    return quietly_train(output=folder, training__n_samples=0, **overrides)[0]


def write_row(folder, metric, score):
    folder.mkdir()
    row = {"step": 1, "score_name": metric, "score": score, "is_best": True}
    (folder / "log.jsonl").write_text(json.dumps(row) + "\n")


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Return two finished runs, and one that was cut off after its first row."""
    folder = tmp_path_factory.mktemp("runs")
    found = {
        "narrow": run(folder / "narrow", **{WIDTH: 4}),
        "wide": run(folder / "wide", **{WIDTH: 32, "training.max_epochs": 4.0}),
    }
    run(folder / "cut", **{"training.max_epochs": 1.0})
    lines = (folder / "cut" / "log.jsonl").read_text().splitlines(keepends=True)
    (folder / "cut" / "log.jsonl").write_text(lines[0] + lines[1][:30])
    (folder / "cut" / "scores.json").unlink()
    return folder, found


def test_results_of_finished_and_unfinished_runs(runs):
    folder, trained = runs
    found = results([folder])
    scores = [result.score for result in found]
    assert scores == sorted(scores, reverse=True)  # The best comes first.
    table = {result.name: result for result in found}
    assert sorted(table) == ["cut", "narrow", "wide"]
    wide = table["wide"]
    assert (wide.state, wide.task, wide.score_name) == ("finished", "coffee", "hits@1")
    assert wide.dev == wide.score == trained["wide"].scores["dev"]["hits@1"]
    assert wide.test == trained["wide"].scores["test"]["hits@1"]
    assert wide.best_step == trained["wide"].best_step and wide.epochs == 4.0
    assert wide.n_parameters == trained["wide"].n_parameters
    assert wide.stopped_because == "max_epochs = 4 reached"
    cut = table["cut"]
    assert (cut.state, cut.step, cut.test, cut.n_parameters) == ("not finished", 0, None, None)
    assert cut.score is not None
    assert results(str(folder)) == results(folder) == found


def test_results_settings_that_differ(runs):
    folder, _ = runs
    table = {result.name: result for result in results([folder / "wide", folder / "narrow"])}
    assert table["wide"].settings == {WIDTH: "32", "training.max_epochs": "4.0"}
    assert table["narrow"].settings == {WIDTH: "4", "training.max_epochs": "2.0"}
    (alone,) = results([folder / "wide"])
    assert alone.settings == {}


def test_results_show_what_variables_stand_for(tmp_path):
    text = '[paths]\ntrain = "{0}"\n\n[tasks.a]\ntrain = {1}\ndev = "x/${{paths.train}}"\n'
    for name, path, value in (("one", "a.txt", "${paths.train}"), ("two", "b.txt", '"b.txt"')):
        write_row(tmp_path / name, "f1", 0.5)
        (tmp_path / name / "config.cfg").write_text(text.format(path, value))
    found = {result.name: result for result in results([tmp_path])}
    assert found["one"].config == {
        "paths.train": '"a.txt"', "tasks.a.train": '"a.txt"', "tasks.a.dev": '"x/a.txt"',
    }  # fmt: skip
    # If one setting follows from another, one column is enough.
    assert found["one"].settings == {"paths.train": '"a.txt"', "tasks.a.train": '"a.txt"'}
    (tmp_path / "two" / "config.cfg").write_text(text.format("b.txt", "${paths.train}"))
    assert {*results([tmp_path])[0].settings} == {"paths.train"}
    # The same value, written in two ways, counts as equal.
    (tmp_path / "two" / "config.cfg").write_text(text.format("a.txt", '"a.txt"'))
    assert results([tmp_path])[0].settings == {}


def test_results_running(tmp_path):
    (tmp_path / "config.cfg").write_text(RANKER)
    with RunLog(tmp_path) as log:
        log.log_step({"step": 0, "score": 0.5, "score_name": "f1", "is_best": True, "epoch": 0.0})
        (result,) = results([tmp_path])
        assert (result.state, result.score, result.task) == ("running", 0.5, "coffee")
    assert results([tmp_path])[0].state == "not finished"


def test_results_lower_is_better_and_runs_of_other_metrics_are_grouped(tmp_path):
    known = [("loss", 0.5), ("f1", 0.1), ("loss", 0.3), ("f1", 0.2), ("f1", None)]
    for name, (metric, score) in zip("abcde", known):
        write_row(tmp_path / name, metric, score)
    assert [result.name for result in results([tmp_path])] == ["c", "a", "d", "b", "e"]


@pytest.mark.parametrize("direction, first", [("min", "a"), ("max", "b"), ("auto", "b")])
def test_results_best_first_as_the_config_says(tmp_path, direction, first):
    for name, score in [("a", 0.1), ("b", 0.2)]:
        write_row(tmp_path / name, "hits@1", score)
        (tmp_path / name / "config.cfg").write_text(
            f'[training]\nscore = "hits@1"\nscore_direction = "{direction}"\n'
        )
    found = results([tmp_path])
    assert found[0].name == first
    assert {result.higher_is_better for result in found} == {direction != "min"}


def test_results_of_a_saved_model_alone(runs, tmp_path):
    folder, _ = runs
    (tmp_path / "old").mkdir()
    (folder / "narrow" / "model-best").rename(tmp_path / "old" / "model-best")
    try:
        (result,) = results([tmp_path / "old"])
    finally:
        (tmp_path / "old" / "model-best").rename(folder / "narrow" / "model-best")
    assert (result.state, result.task, result.score) == ("not finished", "coffee", None)


def test_results_of_damaged_scores_and_of_rows_of_another_kind(tmp_path):
    (tmp_path / "log.jsonl").write_text('{"step": 5, "score": "high", "epoch": 1.5}\n')
    (result,) = results([tmp_path])
    assert (result.step, result.score, result.epochs) == (5, None, 1.5)
    good = {"score_name": "f1", "best_step": 1, "stopped_because": "", "seconds": 1.5}
    good.update(n_parameters=3, scores={"dev": {"f1": None}})
    for name, value, said in (
        ("score_name", None, "'score_name' is missing or"),
        ("seconds", 10**400, "'seconds' is missing or has the wrong type"),
        ("n_parameters", True, "'n_parameters' is missing or"),
        ("scores", {"dev": {"f1": 10**400}}, "the scores on dev are not numbers"),
        ("scores", {"dev": 3}, "the scores on dev are not numbers"),
    ):
        (tmp_path / "scores.json").write_text(json.dumps({**good, name: value}))
        with pytest.raises(ModelError, match=f"scores.json  is damaged: {said}"):
            results([tmp_path])
    (tmp_path / "scores.json").write_text(json.dumps(good))
    assert results([tmp_path])[0].seconds == 1.5
