"""A custom metric, from a file of code, is shown wherever metrics are shown."""

import json

import pytest

from tests.training.examples import RANKER
from thincdialog.api import ConfigError, train
from thincdialog.cli.main import main

CODE = '''
from thincdialog.api import AverageMetric, ExampleMetric, registry


@registry.metrics("my.Length.v1")
def Length(unit: str = "words"):
    """How many words too long or too short a reply is; lower is better."""
    return LengthMetric(unit)


class LengthOff(AverageMetric):
    higher_is_better = False


class LengthMetric(ExampleMetric):
    def __init__(self, unit):
        self.unit = unit
        self.reset()

    def add(self, labels, reply):
        self.n += 1
        words = [text.split() for text in (reply.get("text") or "", labels[0])]
        self.off += abs(len(words[0]) - len(words[1]))

    def report(self):
        return {f"{self.unit}_off": LengthOff(self.off, self.n)}

    def reset(self):
        self.n = self.off = 0

    def merge(self, other):
        self.n += other.n
        self.off += other.off
'''
CONFIG = RANKER.replace(
    "[training]", '[evaluation.metrics.length]\n@metrics = "my.Length.v1"\nunit = "w"\n\n[training]'
).replace('"hits@1"', '"w_off"\nscore_direction = "min"')


@pytest.fixture
def shown(tmp_path, monkeypatch, capsys):
    (tmp_path / "code.py").write_text(CODE)
    (tmp_path / "c.cfg").write_text(CONFIG)
    monkeypatch.chdir(tmp_path)

    def run(command):
        assert main(command.split()) == 0
        return capsys.readouterr().out

    return run


@pytest.mark.slow
def test_user_metric_is_optimised_shown_and_compared(shown, tmp_path):
    out = shown("train c.cfg --code code.py -o a --training.max_epochs 20")
    assert "w_off" in out
    shown("train c.cfg --code code.py -o b --training.max_epochs 0.05 --system.seed 9")
    found = json.loads(shown("evaluate a/model-best --code code.py --json -"))
    low, high = found["intervals"]["w_off"]
    assert low <= found["w_off"] <= high
    text = (tmp_path / "a" / "model-best" / "README.md").read_text()
    assert f"| `w_off` | {found['w_off']:.4f} | {low:.4f} to {high:.4f} |" in text
    shown("evaluate a/model-best --code code.py --predictions p.jsonl")
    rows = [json.loads(line) for line in (tmp_path / "p.jsonl").read_text().splitlines()]
    off = [row["metrics"]["w_off"] for row in rows]
    assert sum(off) / len(off) == pytest.approx(found["w_off"])
    out = json.loads(shown("compare b/model-best a/model-best --code code.py --json -"))
    (one,) = [row for row in out["differences"] if row["metric"] == "w_off"]
    assert one["difference"] < 0 and one["winner"] == ("B" if one["high"] < 0 else "")
    # It is also in every table that people read.
    value = f"{found['w_off']:.4f}"
    assert value in shown("evaluate a --code code.py")
    assert "w_off" in shown("compare b a --code code.py")
    assert value in shown("results b a --columns name,test/w_off")
    table = json.loads(shown("results b a --json"))
    assert [row["name"] for row in table] == ["a", "b"] and table[0]["score"] < table[1]["score"]


@pytest.mark.parametrize("name", ["accuracy", "examples"])
def test_user_metric_with_the_name_of_another_is_refused(shown, tmp_path, name):
    code = CODE.replace('f"{self.unit}_off"', f'"{name}"').replace("my.Length", f"my.{name}")
    (tmp_path / "clash.py").write_text(code)
    config = CONFIG.replace("my.Length", f"my.{name}").replace('"w_off"', f'"{name}"')
    config += '[evaluation.metrics.accuracy]\n@metrics = "thincdialog.Accuracy.v1"\n'
    with pytest.raises(ConfigError) as error:
        train(config, code="clash.py")
    other = "Accuracy" if name == "accuracy" else "the evaluation itself"
    (problem,) = error.value.problems
    assert f"[evaluation.metrics] '{name}' is reported by " in problem.text
    assert other in problem.text and "LengthMetric" in problem.text


UNKNOWN = '''
from thincdialog.api import ExampleMetric, Metric, registry


class Longest(Metric):
    """Length of the longest reply. Nothing says whether long replies are good."""

    def __init__(self, n):
        self.n = n

    def value(self):
        return float(self.n)

    def __add__(self, other):
        return Longest(max(self.n, other.n))


@registry.metrics("my.Longest.v1")
class LongestReply(ExampleMetric):
    def add(self, labels, reply):
        self.n = max(self.n, len(reply.get("text", "").split()))

    def report(self):
        return {"longest": Longest(self.n)}

    def reset(self):
        self.n = 0
'''


def test_user_metric_next_to_the_usual_ones_is_in_every_table(shown, tmp_path):
    """Nothing is known about the metric: neither its direction nor an interval."""
    (tmp_path / "code.py").write_text(UNKNOWN)
    usual = "".join(
        f'[evaluation.metrics.{name}]\n@metrics = "thincdialog.{name}.v1"\n\n'
        for name in ("Accuracy", "F1", "Ranking")
    )
    own = '[evaluation.metrics.longest]\n@metrics = "my.Longest.v1"\n\n'
    (tmp_path / "c.cfg").write_text(RANKER.replace("[training]", usual + own + "[training]", 1))
    out = shown("train c.cfg --code code.py -o a")
    # Once above the rows of the training, and once at its end.
    assert sum("longest" in line.split() for line in out.splitlines()) == 2
    shown("train c.cfg --code code.py -o b --system.seed 9")
    value = json.loads(shown("evaluate a --code code.py --json -"))["longest"]
    rows = [line.split() for line in shown("evaluate a --code code.py").splitlines()]
    assert ["longest", f"{value:.0f}"] in rows
    lines = shown("compare a b --code code.py").splitlines()
    (row,) = [line for line in lines if line.startswith("longest ")]
    assert row.split()[0] == "longest" and row.split()[-2:] == ["-", "-"]
    assert "longest test" in shown("results a b").splitlines()[0]
    assert f"| `longest` | {value:.4f} |" in (tmp_path / "a/model-best/README.md").read_text()
