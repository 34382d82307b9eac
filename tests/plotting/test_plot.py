"""Curves of runs, on the terminal and in files."""

import json
import re
import sys
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.processes import slow
from thincdialog.cli.main import main
from thincdialog.errors import DataError, MissingPackageError, OutputError
from thincdialog.plotting.curves import make_panels
from thincdialog.plotting.plot import plot
from thincdialog.runs.find_runs import find_runs


def make_row(step, score=None, name="hits@1", **more):
    return {
        "step": step, "epoch": step / 10, "examples": step * 4, "seconds": step / 2,
        "loss_per_example": 3.0 / step if step else None, "score_name": name, "score": score,
        "scores": {} if score is None else {name: score, "loss": 2.0 - score},
        "is_best": True, "learn_rate": 0.001, **more,
    }  # fmt: skip


SCORES = {
    "score_name": "hits@1", "best_step": 10, "stopped_because": "it was time", "seconds": 3.5,
    "n_parameters": 12, "scores": {"dev": {"hits@1": 0.5}, "test": {"hits@1": None}},
}  # fmt: skip


pytest.importorskip("matplotlib")
pytest.importorskip("plotille")


def write_run(folder, rows):
    folder.mkdir(parents=True)
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / "log.jsonl").write_text(text, encoding="utf8")
    return folder


@pytest.fixture
def small(tmp_path):
    rows = [make_row(step, score) for step, score in [(0, 0.1), (10, 0.4), (20, 0.7)]]
    return write_run(tmp_path / "small", [*rows, make_row(30, 0.6, is_best=False)])


@pytest.fixture
def large(tmp_path):
    return write_run(tmp_path / "large", [make_row(step, step / 40) for step in (0, 10, 20)])


def test_runs_of_a_folder_of_folders_each_once(small, large, tmp_path):
    (tmp_path / "empty").mkdir()
    runs = find_runs([tmp_path, small, small / "log.jsonl"])
    assert [run.name for run in runs] == ["large", "small"]
    assert [len(run.rows) for run in runs] == [3, 4]


def test_runs_that_are_named_in_two_ways_are_listed_once(small, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(small)
    (small / "model-best").mkdir()
    (small / "model-best" / "meta.json").write_text("{}")
    assert [run.name for run in find_runs([small, "small", "link", "link/model-best"])] == ["small"]
    assert [run.path for run in find_runs([small / "model-best"])] == [small]
    assert [run.name for run in find_runs(["link"])] == ["small"]


def test_runs_with_the_same_name_are_distinguished(tmp_path):
    for name in ("a", "b"):
        write_run(tmp_path / name / "run", [make_row(0)])
    assert [run.name for run in find_runs([tmp_path])] == ["a/run", "b/run"]


def test_runs_one_after_another_in_a_file(tmp_path):
    path = tmp_path / "mine.jsonl"
    steps = (0, 10, 0, 10, 20)
    lines = [json.dumps(make_row(step)) for step in steps]
    path.write_text("\n".join([*lines, '{"step": 30, "ep']), encoding="utf8")
    runs = find_runs([path])
    assert [(run.name, len(run.rows)) for run in runs] == [("mine.jsonl#1", 2), ("mine.jsonl#2", 3)]


def test_runs_that_cannot_be_found_are_one_error(small, tmp_path):
    with pytest.raises(DataError, match=r"smal  does not exist\. Did you mean .*small\?"):
        find_runs([tmp_path / "smal"])
    (tmp_path / "other").mkdir()
    with pytest.raises(DataError, match="is not a training run and contains none"):
        find_runs([tmp_path / "other"])
    with pytest.raises(DataError, match=r"x{300}.*  cannot be read: File name too long"):
        find_runs([tmp_path / ("x" * 300)])


def test_runs_of_a_pattern_leave_out_pictures_and_other_files(small, large, tmp_path):
    (tmp_path / "curves.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\xff")
    (tmp_path / "sweep.json").write_text('{"format": 1, "runs": {}}\n')
    paths = sorted(tmp_path.iterdir())
    assert len(paths) == 4 and [run.path for run in find_runs(paths)] == [large, small]
    for path in (tmp_path / "curves.png", tmp_path / "sweep.json"):
        with pytest.raises(DataError, match="has no rows of a training run"):
            find_runs([path])
    (tmp_path / "odd.jsonl").write_text("{}\n")
    with pytest.raises(DataError, match="odd.jsonl  has no rows of a training run"):
        find_runs([small, tmp_path / "odd.jsonl"])


ODD = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=3) | st.just(10**400) | st.just(3),
    lambda inner: (
        st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=4,
)


@given(st.data())
@settings(max_examples=60, deadline=None)
@pytest.mark.slow
def test_runs_with_odd_rows_or_scores_are_shown_or_one_error(tmp_path_factory, data):
    folder = write_run(tmp_path_factory.mktemp("odd") / "run", [])
    row, facts = make_row(10, 0.5), dict(SCORES)
    for known in (row, facts):
        for key in data.draw(st.lists(st.sampled_from(sorted(known)), max_size=3)):
            known[key] = data.draw(ODD)
    (folder / "log.jsonl").write_text(json.dumps(make_row(0)) + "\n" + json.dumps(row))
    (folder / "scores.json").write_text(json.dumps(facts))
    for command in ("results", "results --csv", "results --json", "plot --against epoch"):
        assert main([*command.split(), str(folder)]) in (0, 1)


def lines_of(panel):
    return {(line.run, line.split): (line.xs, line.ys) for line in panel.lines}


def test_panels_loss_and_score(small, large):
    # Losses with different candidates cannot share an axis.
    loss, dev_loss, score = make_panels(find_runs([small, large]), against="epoch")
    titles = ["train loss per example (nats)", "dev loss per example (nats)", "hits@1 (dev)"]
    assert [panel.title for panel in (loss, dev_loss, score)] == titles
    # There is no training loss before the first step.
    assert lines_of(loss)["small", "train"] == ([1.0, 2.0, 3.0], [0.3, 0.15, 0.1])
    assert lines_of(dev_loss)["large", "dev"] == ([0.0, 1.0, 2.0], [2.0, 1.75, 1.5])
    assert lines_of(score)["small", "dev"] == ([0.0, 1.0, 2.0, 3.0], [0.1, 0.4, 0.7, 0.6])
    assert [line.best for line in score.lines] == [2, 2]
    assert [line.best for line in loss.lines + dev_loss.lines] == [None] * 4


def test_panels_say_what_the_loss_is_a_mean_of(small, tmp_path):
    rows = [make_row(step, 0.1, loss_per_example=None, loss_per_token=0.7) for step in (10, 20)]
    tokens = write_run(tmp_path / "tokens", rows)
    loss, *_ = make_panels(find_runs([tokens]))
    assert loss.title == "train loss per token (nats)"
    assert lines_of(loss)["tokens", "train"] == ([10.0, 20.0], [0.7, 0.7])
    loss, *_ = make_panels(find_runs([tokens, small]))
    assert loss.title == "train loss per example or token (nats)"
    (before,) = make_panels(find_runs([write_run(tmp_path / "new", [make_row(0, 0.1)])]), ["loss"])
    assert before.title == "dev loss (nats)"


def test_panels_of_training_leave_out_rows_of_more_steps(tmp_path):
    rows = [make_row(step, is_evaluation=False) for step in (5, 10, 15)]
    rows[2:2] = [make_row(12, 0.5, is_evaluation=True, loss_per_example=9.0)]
    loss, dev, rate = make_panels(
        find_runs([write_run(tmp_path / "a", rows)]), ["loss", "learn_rate"]
    )
    assert lines_of(loss) == {("a", "train"): ([5.0, 10.0, 15.0], [0.6, 0.3, 0.2])}
    assert lines_of(dev) == {("a", "dev"): ([12.0], [1.5])} and len(rate.lines[0].xs) == 3


def test_panels_of_chosen_metrics(small):
    panels = make_panels(find_runs([small]), ["learn_rate", "dev/loss", "train/loss", "hits@1"])
    assert [panel.title for panel in panels] == [
        "learning rate", "dev loss per example (nats)", "train loss per example (nats)",
        "hits@1 (dev)",
    ]  # fmt: skip
    assert [len(panel.lines) for panel in panels] == [1, 1, 1, 1]


def test_panels_without_dev_data(tmp_path):
    folder = write_run(tmp_path / "run", [make_row(step) for step in (0, 10)])
    (panel,) = make_panels(find_runs([folder]))
    assert lines_of(panel) == {("run", "train"): ([10.0], [0.3])}


def test_panels_runs_with_different_scores_have_a_panel_each(small, tmp_path):
    other = write_run(tmp_path / "other", [make_row(0, 0.5, "f1"), make_row(10, 0.6, "f1")])
    panels = make_panels(find_runs([small, other]))
    assert [panel.metric for panel in panels] == ["train/loss", "dev/loss", "hits@1", "f1"]
    assert [len(panel.lines) for panel in panels] == [2, 2, 1, 1]


def test_panels_errors(small, tmp_path):
    with pytest.raises(DataError, match=r"'hits@2' was not measured in any run .* mean 'hits@1'\?"):
        make_panels(find_runs([small]), ["hits@2"])
    with pytest.raises(DataError, match=r"'zzz' was not measured .* choose from: epoch, .*hits@1"):
        make_panels(find_runs([small]), ["zzz"])
    empty = write_run(tmp_path / "empty", [])
    with pytest.raises(DataError, match=r"empty  no evaluation has been logged yet"):
        make_panels(find_runs([empty]))
    # A run that has just begun does not hide the others.
    assert make_panels(find_runs([empty, small]))


def test_plot_terminal_of_one_run(small):
    text = plot([small], width=80)
    lines = text.splitlines()
    assert lines[0] == "train loss per example (nats)" and "hits@1 (dev)" in lines
    assert "dev loss per example (nats)" in lines and not re.search(r"^[AB]  ", text, re.M)
    assert max(map(len, lines)) <= 80 and "\x1b" not in text
    assert text.count("training steps") == 3 and "-|----" in text
    assert not any(line != line.rstrip() for line in lines)


def test_plot_terminal_of_several_runs(small, large):
    text = plot([small, large], against="epoch", width=60)
    assert text.splitlines()[0] == "train loss per example (nats)"
    assert text.splitlines()[-2:] == ["A  small", "B  large"]
    assert max(map(len, text.splitlines())) <= 60
    # Each line is drawn with its letter.
    body = "\n".join(text.splitlines()[:-2])
    assert body.count("A") >= 4 and body.count("B") >= 4


def test_plot_terminal_colours_change_nothing_else(small, large, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")  # As on a terminal.
    plain, coloured = plot([small, large]), plot([small, large], colour=True)
    assert coloured.count("\x1b[38;5;32m") > 10
    stripped = re.sub(r"\x1b\[[\d;]*m", "", coloured)
    assert [line.rstrip() for line in stripped.splitlines()] == plain.splitlines()


def test_plot_terminal_without_braille(small):
    text = plot([small], braille=False)
    assert text.isascii() and "*" in text


@pytest.mark.parametrize("scores", [[0.5], [0.5, 0.5], [0.0, 0.0, 0.0], [1e-9, 2e-9], [-5e9, 3e12]])
def test_plot_terminal_of_odd_values(tmp_path, scores):
    rows = [make_row(10 * step, score) for step, score in enumerate(scores)]
    text = plot([write_run(tmp_path / "run", rows)])
    assert "hits@1 (dev)" in text and max(map(len, text.splitlines())) <= 80


def test_plot_terminal_that_is_too_narrow(small):
    assert plot([small], width=5) == plot([small], width=40)


def test_plot_svg_holds_the_curves(small, large, tmp_path):
    path = tmp_path / "new" / "curves.svg"
    assert plot([small, large], files=[path]) == ""
    ElementTree.parse(path)
    text = path.read_text(encoding="utf8")
    titles = ("train loss per example (nats)", "dev loss per example (nats)", "hits@1 (dev)")
    for words in (*titles, "small", "large", "best"):
        assert f">{words}</text>" in text
    before = path.read_bytes()
    plot([small, large], files=[path])
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "n, rows, columns", [(1, 1, 1), (3, 1, 3), (4, 2, 2), slow(5, 2, 3), slow(7, 3, 3)]
)
def test_plot_wraps_panels(small, tmp_path, n, rows, columns):
    names = ["hits@1", "train/loss", "dev/loss", "learn_rate", "epoch", "seconds", "examples"][:n]
    plot([small], metrics=names, files=[tmp_path / "curves.png"])
    png = (tmp_path / "curves.png").read_bytes()
    width, height = (int.from_bytes(png[at : at + 4], "big") / 150 for at in (16, 20))
    assert width == pytest.approx(4.8 * columns + 0.4, abs=0.1)
    assert 3.6 * rows < height < 3.6 * rows + 0.8


def test_plot_png_needs_no_display(small, tmp_path, monkeypatch):
    monkeypatch.delenv("DISPLAY", raising=False)
    plot([small], files=[tmp_path / "curves.png"], against="seconds")
    data = (tmp_path / "curves.png").read_bytes()
    assert data.startswith(b"\x89PNG") and len(data) > 10_000


def test_plot_file_that_cannot_be_written_is_one_error(small, tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        plot([small], files=[small / "log.jsonl" / "curves.png"])
    with pytest.raises(OutputError, match=r"curves\.xyz  cannot be written: .*xyz"):
        plot([small], files=[tmp_path / "curves.xyz"])


@pytest.mark.parametrize("package, files", [("plotille", []), ("matplotlib", ["a.png"])])
def test_plot_missing_package_is_one_line(small, package, files, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackageError, match=f"needs the package '{package}'") as raised:
        plot([small], files=files)
    assert "pip install 'thincdialog[plot]'" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_plot_a_great_many_runs(tmp_path):
    runs = []
    for i in range(30):
        rows = [make_row(s, (i + s) / 70) for s in (0, 9, 20)]
        runs.append(write_run(tmp_path / f"run-with-a-long-name-{i}", rows))
    plot(runs, files=[tmp_path / "curves.svg"])
    text = (tmp_path / "curves.svg").read_text()
    assert all(f">run-with-a-long-name-{i}</text>" in text for i in range(30))
    assert max(map(len, plot(runs).splitlines())) <= 80
