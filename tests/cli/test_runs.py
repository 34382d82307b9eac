"""``plot``, ``results`` and ``train`` on a terminal, as a user runs them."""

import csv
import io
import json
import re
import shutil
import sys
import xml.etree.ElementTree as ElementTree

import pytest

from tests.training.examples import Terminal

from .conftest import SMALL


def test_results_table(runs, run):
    code, out, _ = run(f"results {runs}")
    header, _, best, second = out.splitlines()
    assert code == 0 and header.split("  ")[0] == "run" and "hits@1 test" in header
    # Columns of settings that differ come before columns of results.
    assert header.split()[1] == "learn_rate"
    assert {best.split()[0], second.split()[0]} == {"0.01", "0.001"}
    assert best.split()[1] == best.split()[0] and float(best.split()[2]) >= float(second.split()[2])


def test_results_chosen_columns(runs, run):
    code, out, _ = run(f"results {runs} --columns name,learn_rate,test/mrr,n_parameters")
    found = json.loads(run(f"results {runs} --json")[1])
    header, _, *lines = (line.split() for line in out.splitlines())
    assert code == 0 and header == ["name", "learn_rate", "test/mrr", "n_parameters"]
    for words, one in zip(lines, found):
        mrr = f"{one['scores']['test']['mrr']:.4f}"
        assert words == [one["name"], one["name"], mrr, str(one["n_parameters"])]
    table = run(f"results {runs} --columns learn_rate,state --csv")[1].splitlines()
    assert table[0] == "training.optimizer.learn_rate,state" and table[1].endswith(",finished")
    (one, _) = json.loads(run(f"results {runs} --columns name,dev --json")[1])
    assert one == {"name": found[0]["name"], "dev": found[0]["dev"]}
    code, out, err = run(f"results {runs} --columns learn_rat")
    assert (code, out) == (1, "") and "--columns: 'learn_rat' is not a column" in err
    code, _, err = run(f"results {runs} --columns mrr")
    assert code == 1 and "'mrr' matches several columns: dev/mrr, test/mrr" in err


def test_results_columns_of_settings_that_all_runs_have_alike(runs, run):
    names = "name,training.optimizer.@optimizers,training.score,learn_rate"
    rows = json.loads(run(f"results {runs} --columns {names} --json")[1])
    assert {row["training.score"] for row in rows} == {"hits@1"}
    assert {row["training.optimizer.@optimizers"] for row in rows} == {"thincdialog.LazyAdam.v1"}
    assert [row["training.optimizer.learn_rate"] for row in rows] == [row["name"] for row in rows]
    assert "training.score" not in run(f"results {runs} --csv")[1].splitlines()[0]


def test_results_csv_cells_are_plain(runs, run, tmp_path):
    for name, text in (("a", '"simple"'), ("b", '"a, b"')):
        shutil.copytree(runs / "0.01", tmp_path / name)
        config = (runs / "0.01" / "config.cfg").read_text()
        (tmp_path / name / "config.cfg").write_text(f"{config}\n[custom]\nlabel = {text}\n")
    rows = list(csv.DictReader(io.StringIO(run(f"results {tmp_path} --csv")[1])))
    assert {row["custom.label"] for row in rows} == {"simple", "a, b"}


def test_results_of_runs_that_have_little_in_common(runs, run, tmp_path):
    """The table fits a terminal, and each column has a different name."""
    config = (runs / "0.01" / "config.cfg").read_text()
    other = config.replace("coffee", "tea").replace("width = 128", "width = 64")
    other = other.replace("[paths]\n", "").replace("[system]", '[paths]\ndev = "x"\n\n[system]')
    assert other != config
    for name, text in (("a", config), ("b", other.replace("seed = 0", "seed = 7"))):
        shutil.copytree(runs / "0.01", tmp_path / name)
        (tmp_path / name / "config.cfg").write_text(text)
    code, out, err = run(f"results {tmp_path}")
    header = re.split("  +", out.splitlines()[0])
    assert code == 0 and len(set(header)) == len(header)
    assert max(map(len, out.splitlines())) <= 80
    assert re.search(r"also differ in \d\d settings of .*\[tasks\]", err)


def test_results_csv_and_json(runs, run):
    rows = list(csv.DictReader(io.StringIO(run(f"results {runs}/0.01 {runs}/0.001 --csv")[1])))
    found = json.loads(run(f"results {runs} --json")[1])
    names = [row["training.optimizer.learn_rate"] for row in rows]
    assert [result["name"] for result in found] == names and set(names) == {"0.01", "0.001"}
    assert float(rows[0]["test"]) == found[0]["scores"]["test"]["hits@1"]


def test_plot_on_the_terminal(runs, run, monkeypatch):
    pytest.importorskip("plotille")
    monkeypatch.setenv("COLUMNS", "80")
    code, out, _ = run(f"plot {runs} --against epoch")
    assert code == 0
    assert out.startswith("train loss per example (nats)\n") and "hits@1 (dev)" in out
    assert max(map(len, out.splitlines())) <= 80 and "\x1b" not in out


def test_plot_into_files(runs, run, tmp_path):
    pytest.importorskip("matplotlib")
    png, svg = tmp_path / "a.png", tmp_path / "a.svg"
    code, out, err = run(f"plot {runs} --metrics 'mrr, learn_rate' --png {png} --svg {svg}")
    assert (code, out) == (0, "") and f"Wrote {png}" in err and f"Wrote {svg}" in err
    assert png.read_bytes().startswith(b"\x89PNG")
    ElementTree.parse(svg)
    code, _, err = run(f"plot {runs} --png {png}")
    assert code == 1 and "a.png  already exists" in err
    assert run(f"plot {runs} --png {png} --force")[0] == 0


@pytest.fixture
def on_a_terminal(run, runs, monkeypatch):
    """Return what ``train`` writes if stdout and stderr are a terminal with 80 columns."""
    monkeypatch.chdir(runs)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)

    def train(options):
        terminal = Terminal()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", terminal)
            patch.setattr(sys, "stderr", terminal)
            code = run(
                f"train quickstart.cfg {SMALL} --no-output --training.n_samples 0 {options}"
            )[0]
        assert code == 0, terminal.getvalue()
        return terminal.getvalue()

    return train


@pytest.mark.slow
def test_train_bar_on_a_terminal_shows_loss_speed_and_time_left(on_a_terminal):
    ends = "--training.max_epochs 0 --training.max_seconds 1 --training.max_steps 100000"
    text = on_a_terminal(f"{ends} --training.eval_every_epochs 20")
    shown = r"\|[^|]*\| step \d+/100000, loss \d+\.\d{4}/example, [\d,]+ examples/s, [\d:]+ left"
    assert re.search(shown, text)
    assert "\x1b[1m" in text  # The best row is bold.


def test_train_no_color_on_a_terminal(on_a_terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    text = on_a_terminal("")
    assert "\x1b[1m" not in text and "\x1b[3" not in text and "loss/example" in text


def test_results_count_lines_of_the_log_that_cannot_be_read(run, tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text('{"step": 5, "epoch": 1.5}\n{"step": 7, "epo\n\0\0\n')
    for command in ("results", f"plot --svg {tmp_path / 'curves.svg'} --metrics epoch"):
        code, _, err = run(f"{command} {tmp_path}")
        assert code == 0 and f"{path}  2 of its lines cannot be read" in err
    path.write_text('{"step": 5, "epoch": 1.5}\n')
    assert "cannot be read" not in run(f"results {tmp_path}")[2]
