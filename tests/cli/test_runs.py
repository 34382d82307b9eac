"""``plot``, ``results`` and ``train --file-friendly``, as a user runs them."""

import csv
import fcntl
import io
import json
import os
import pty
import re
import select
import shutil
import struct
import subprocess
import sys
import termios
import xml.etree.ElementTree as ElementTree

import pytest

from thincdialog.cli.main import main

OVERRIDES = [
    "--tasks.coffee.n_train", "60", "--tasks.coffee.n_dev", "10", "--tasks.coffee.n_test", "10",
    "--agent.model.encoder.width", "8", "--training.n_samples", "0",
]  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory, root):
    folder = tmp_path_factory.mktemp("runs")
    for rate in ("0.001", "0.01"):
        options = ["--training.max_epochs", "2", "--training.optimizer.learn_rate", rate]
        command = ["train", str(root / "configs" / "quickstart.cfg"), "-o", str(folder / rate)]
        assert main([*command, *OVERRIDES, *options]) == 0
    return folder


def test_results_table(trained, capsys):
    assert main(["results", str(trained)]) == 0
    header, _, best, second = capsys.readouterr().out.splitlines()
    assert header.split("  ")[0] == "run" and "hits@1 test" in header
    assert header.split()[-1] == "learn_rate"
    assert best.split()[0] == "0.01" and second.split()[0] == "0.001"
    assert best.split()[-1] == "0.01"


def test_results_of_runs_that_have_little_in_common(trained, tmp_path, capsys):
    """The table fits a terminal, and its columns have one name each."""
    config = (trained / "0.01" / "config.cfg").read_text()
    other = config.replace("coffee", "tea").replace("width = 128", "width = 64")
    other = other.replace("[paths]\n", "").replace("[system]", '[paths]\ndev = "x"\n\n[system]')
    assert other != config
    for name, text in (("a", config), ("b", other.replace("seed = 0", "seed = 7"))):
        shutil.copytree(trained / "0.01", tmp_path / name)
        (tmp_path / name / "config.cfg").write_text(text)
    assert main(["results", str(tmp_path)]) == 0
    shown = capsys.readouterr()
    header = re.split("  +", shown.out.splitlines()[0])
    assert len(set(header)) == len(header)
    assert max(map(len, shown.out.splitlines())) <= 80
    assert re.search(r"all\): \d\d settings of .*\[tasks\]", shown.err)


def test_results_of_another_file(tmp_path, capsys):
    (tmp_path / "replies.jsonl").write_text('{"id": "1", "reply": "yes"}\n')
    for command in ("results", "plot"):
        assert main([command, str(tmp_path / "replies.jsonl")]) == 1
        assert "holds no rows of a training run" in capsys.readouterr().err


def test_results_csv_and_json(trained, capsys):
    assert main(["results", str(trained / "0.01"), str(trained / "0.001"), "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["training.optimizer.learn_rate"] for row in rows] == ["0.01", "0.001"]
    assert main(["results", str(trained), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [run["name"] for run in found] == ["0.01", "0.001"]
    assert float(rows[0]["test"]) == found[0]["scores"]["test"]["hits@1"]


def test_results_and_plot_of_nothing(trained, capsys):
    for command in ("results", "plot"):
        assert main([command, str(trained / "0.02")]) == 1
        err = capsys.readouterr().err
        assert "does not exist. Did you mean" in err and err.count("\n") == 1


def test_plot_on_the_terminal(trained, capsys, monkeypatch):
    pytest.importorskip("plotille")
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["plot", str(trained), "--against", "epoch"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("train loss per example (nats)\n") and "hits@1 (dev)" in out
    assert max(map(len, out.splitlines())) <= 80 and "\x1b" not in out


def test_plot_into_files(trained, capsys, tmp_path):
    pytest.importorskip("matplotlib")
    png, svg = tmp_path / "a.png", tmp_path / "a.svg"
    command = ["plot", str(trained), "--metrics", "mrr, learn_rate", "--png", str(png)]
    assert main([*command, "--svg", str(svg)]) == 0
    out, err = capsys.readouterr()
    assert out == "" and f"Wrote {png}" in err and f"Wrote {svg}" in err
    assert png.read_bytes().startswith(b"\x89PNG")
    ElementTree.parse(svg)


def test_plot_unknown_metric(trained, capsys):
    assert main(["plot", str(trained), "--metrics", "hits@55"]) == 1
    assert "did you mean 'hits@5'?" in capsys.readouterr().err


def on_a_terminal(command, root, **environment):
    """What a command writes when stdout and stderr are a terminal of 80 columns."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
    environment = {**os.environ, "COLUMNS": "80", "TERM": "xterm", **environment}
    with subprocess.Popen(command, cwd=root, stdout=its, stderr=its, env=environment) as process:
        os.close(its)
        parts = []
        while True:
            if select.select([ours], [], [], 120)[0]:
                try:
                    part = os.read(ours, 65536)
                except OSError:  # The other end is closed.
                    break
                if not part:
                    break
                parts.append(part)
        process.wait()
    os.close(ours)
    assert process.returncode == 0, b"".join(parts)
    return b"".join(parts).decode("utf8")


TRAIN = [sys.executable, "-m", "thincdialog", "train", "configs/quickstart.cfg", *OVERRIDES]
LONG = ["--training.max_epochs", "0", "--training.max_seconds", "1.5", "--training.max_steps"]


def test_train_bar_on_a_terminal_shows_loss_speed_and_time_left(root):
    text = on_a_terminal([*TRAIN, *LONG, "100000", "--training.eval_every_epochs", "20"], root)
    shown = r"\|[^|]*\| step \d+/100000, loss \d+\.\d{4}/example, [\d,]+ examples/s, [\d:]+ left"
    assert re.search(shown, text)
    assert "\x1b[1m" in text  # The best row is bold.


def test_train_no_color_on_a_terminal(root):
    text = on_a_terminal([*TRAIN, *LONG, "30"], root, NO_COLOR="1")
    assert "\x1b[1m" not in text and "\x1b[3" not in text and "loss/example" in text


def test_train_file_friendly_on_a_terminal_is_plain_lines(root):
    text = on_a_terminal([*TRAIN, *LONG, "30", "--file-friendly"], root)
    assert "\x1b" not in text and "loss/example" in text
    # A terminal ends lines with \r\n; a bar would go back without a new line.
    assert not re.search(r"\r(?!\n)", text)
