"""A metric of the user's own, from a file of code, wherever metrics show up."""

import json

import pytest

from tests.training.examples import RANKER
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
    table = json.loads(shown("results b a --json"))
    assert [row["name"] for row in table] == ["a", "b"] and table[0]["score"] < table[1]["score"]
