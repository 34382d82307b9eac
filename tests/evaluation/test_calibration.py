"""Temperatures, calibration errors, and thresholds that are chosen at the end of a training."""

import io
import json
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.serving.conftest import Client
from tests.training.examples import CLASSIFIER, quietly_train, weights
from thincdialog.api import DialogError, evaluate, evaluate_in_detail, load, predict
from thincdialog.cli.main import main
from thincdialog.evaluation.calibration import calibration_error, fit_temperature, tempered
from thincdialog.evaluation.coverage import shares_at
from thincdialog.serving import app


def loss(P, right, temperature):
    return -np.log(tempered(P, temperature)[np.arange(len(P)), right]).mean()


@pytest.mark.parametrize("true", [0.3, 1.0, 4.0])
def test_fit_temperature_finds_the_lowest_loss(true):
    random = np.random.default_rng(0)
    Z = random.normal(size=(400, 5)) * 3
    right = np.array([random.choice(5, p=p) for p in tempered(np.exp(Z), true)])
    P = tempered(np.exp(Z), 1.0)
    found = fit_temperature(P, right)
    assert found == pytest.approx(true, rel=0.2)
    grid = np.geomspace(0.05, 20, 2000)
    best = min(grid, key=lambda each: loss(P, right, each))
    assert found == pytest.approx(best, rel=0.004)
    assert loss(P, right, found) <= loss(P, right, best)


@pytest.mark.parametrize("scale, n_classes", [(1.0, 2), (4.0, 5), (20.0, 40)])
def test_fit_temperature_stays_unsure_if_all_guesses_are_right(scale, n_classes):
    """One guess of n + 2 may be wrong, however sure the model was before."""
    Z = np.random.default_rng(0).normal(size=(100, n_classes)) * scale
    P = tempered(np.exp(Z - Z.max(axis=1, keepdims=True)), 1.0)
    found = tempered(P, fit_temperature(P, P.argmax(axis=1)))
    assert found.max(axis=1).mean() == pytest.approx(101 / 102)


def test_tempered_can_undo_a_temperature():
    P = np.array([[0.7, 0.2, 0.1], [0.5, 0.5, 0.0]])
    assert tempered(tempered(P, 2.5), 1 / 2.5) == pytest.approx(P)
    assert tempered(P, 0.5)[0] == pytest.approx(np.array([0.49, 0.04, 0.01]) / 0.54)


@given(st.lists(st.tuples(st.integers(1, 30), st.booleans()), min_size=1, max_size=30))
def test_calibration_error_is_the_mean_gap_of_fifteen_bins(rows):
    best = [0.5 + n / 64 for n, _ in rows]
    P = np.array([[p, 1 - p] for p in best])
    right = np.array([0 if is_right else 1 for _, is_right in rows])
    expected = 0.0
    for number in range(15):
        own = [n for n, p in enumerate(best) if number / 15 < p <= (number + 1) / 15]
        if own:
            accuracy = sum(rows[n][1] for n in own) / len(own)
            expected += len(own) / len(rows) * abs(accuracy - sum(best[n] for n in own) / len(own))
    assert calibration_error(P, right) == pytest.approx(expected)


# --- at the end of a training -------------------------------------------------------


def write(path, n, others=0):
    words = {"greet": "hello hi", "leave": "bye later", "pay": "bill owe"}
    rows = [
        {"text": f"{word} {i % 7} please", "label": label}
        for i in range(n)
        for label, both in words.items()
        for word in both.split()
    ]
    rows += [{"text": f"moon {i}", "label": "oos"} for i in range(others)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "train.jsonl", 5)
    write(tmp_path / "dev.jsonl", 10, others=20)
    return tmp_path


INTENTS = (
    """
[tasks.intents]
@teachers = "thincdialog.LabelledText.v1"
train = "train.jsonl"
dev = "dev.jsonl"

[training]
max_epochs = 8
eval_every_epochs = 1
n_samples = 0
"""
    + CLASSIFIER
)
WANTED = {"agent__reject_class": "oos", "agent__threshold": "recall:0.9"}


def test_training_saves_the_threshold_that_dev_chose(folder):
    result, shown = quietly_train(INTENTS, folder / "out", **WANTED)
    (note,) = re.findall(r"^dev: (?!25.0 %)(.*)$", shown, re.M)
    model = load(folder / "out")
    assert model.agent.temperature < 1 and 0 < model.agent.rejects_below < 1
    found = evaluate_in_detail(folder / "out", split="dev", n_resamples=0)
    assert found.scores == result.scores["dev"]
    rejected = [row.reply["text"] == "oos" for row in found.labelled if row.labels == ["oos"]]
    assert len(rejected) == 20 and sum(rejected) >= 18
    answered = [row for row in found.labelled if row.reply["text"] != "oos"]
    n_right = sum(row.reply["text"] in row.labels for row in answered)
    threshold = model.agent.rejects_below
    assert note == (
        f"threshold {threshold:.4f} chosen for recall 0.9: {len(answered)} of 80 texts get a "
        f"class, of which {n_right} are right."
    )
    best = folder / "out" / "model-best"
    meta = json.loads((best / "meta.json").read_text())
    assert (meta["threshold"], meta["temperature"]) == (threshold, model.agent.temperature)
    assert meta["dev"] == found.scores
    assert f"answers `oos`\n  if the best one has a probability below {threshold:.4f}" in (
        (best / "README.md").read_text()
    )
    shares = shares_at(found.guesses(), found.threshold)
    assert shares["out-of-scope recall"][0] == sum(rejected) / 20
    error = found.as_json()["calibration"]
    assert error["temperature"] == model.agent.temperature and error["after"] < error["before"]
    (said, guess) = model.respond("moon 3", top=1)
    assert said == ("oos", None) and guess.probability < model.agent.rejects_below
    assert model.respond("moon 3", top=1, threshold=0.0) == [guess]
    # A number replaces the chosen threshold, but not the temperature.
    by_hand = load(folder / "out", overrides={"agent.threshold": 0.0})
    assert by_hand.respond("moon 3", top=1) == [guess]


@pytest.mark.parametrize("threshold, expected", [(0.1, "unknown"), (0.0, "greet")])
def test_a_blank_text_is_rejected_by_any_threshold_in_each_way_to_answer(
    folder, capsys, monkeypatch, threshold, expected
):
    # The classes have different frequencies, so a blank text gets the most frequent one.
    rows = [("hello", "greet"), ("hi", "greet"), ("bye", "leave")] * 20 + [("moon", "leave")] * 9
    lines = [json.dumps({"text": text, "label": label}) for text, label in rows]
    for name in ("train", "dev"):
        Path(f"{name}.jsonl").write_text("\n".join(lines))
    quietly_train(INTENTS, "out", agent__threshold=threshold)
    Path("blank.jsonl").write_text("".join(
        json.dumps({"text": text, "label": "greet"}) + "\n" for text in ("", " ", "\n\t")
    ))  # fmt: skip
    model = load("out")
    said = [model.respond(""), model.respond(" ", top=2)[0].text, *model.respond_to_all(["", "\n"])]
    said += [row["reply"] for row in predict("out", "blank.jsonl")]
    asked = Client(app("out")).post("/classify", {"input": ["", " "]})
    said += [each["label"] for each in asked[1]["data"]]
    found = evaluate_in_detail(
        "out", overrides={"tasks.intents.test": "blank.jsonl"}, n_resamples=0
    )
    said += [row.reply["text"] for row in found.rows]
    assert set(said) == {expected} and len(said) == 12
    assert found.scores["accuracy"] == (expected == "greet")
    assert shares_at(found.guesses(), found.threshold)["answered"][0] == (expected == "greet")
    given = model.respond("", threshold=0.0), model.respond("", threshold=0.01)
    assert given == ("greet", "unknown")
    monkeypatch.setattr("sys.stdin", io.StringIO(r"\n"))  # A line break.
    assert main(["chat", "out"]) == 0
    assert capsys.readouterr().out.startswith(expected)


@pytest.mark.slow
def test_threshold_of_a_run_that_resumed_is_the_same(folder):
    quietly_train(INTENTS, folder / "whole", **WANTED)
    quietly_train(INTENTS, folder / "parts", **{**WANTED, "training__max_epochs": 4})
    quietly_train(INTENTS, folder / "parts", resume=True, **WANTED)
    whole, parts = (
        (folder / name / "model-best" / "agent.json").read_bytes() for name in ("whole", "parts")
    )
    assert whole == parts and b'"temperature": 1.0' not in whole
    assert weights(folder / "whole") == weights(folder / "parts")


def test_model_without_a_threshold_yet_is_an_error(folder):
    quietly_train(INTENTS, folder / "out", **WANTED)
    last = load(folder / "out" / "model-last")
    with pytest.raises(DialogError, match="model-last  has no threshold yet.*train --resume"):
        last.respond("moon")
    assert last.respond("moon", threshold=1.0) == "oos"
    assert app(
        folder / "out" / "model-last", threshold=1.0
    )  # The server answers a first text when it is made.
    assert evaluate(folder / "out" / "model-last", split="dev")["examples"] == 80


FEW = r"examples in scope: 48 \(50 are needed\), classes: 3 \(2 .*may be far from the truth"


@pytest.mark.parametrize(
    "n, others, wanted, told",
    [
        (8, 5, "recall:0.9", f"{FEW}, and no threshold is chosen"),
        (8, 5, 0.5, f"{FEW}."),
        (10, 0, "recall:0.9", "recall 0.9 was wanted, but no example is labelled 'oos': every"),
    ],
)
def test_training_warns_about_too_little_dev_data(folder, n, others, wanted, told):
    write(folder / "dev.jsonl", n, others)
    _, shown = quietly_train(INTENTS, folder / "out", **{**WANTED, "agent__threshold": wanted})
    assert re.search(f"^dev: {told}", shown, re.M), shown
    assert load(folder / "out").agent.rejects_below == (0.5 if wanted == 0.5 else 0.0)


def test_training_says_that_no_threshold_reaches_the_precision(folder):
    others = {'"greet"': '"leave"', '"leave"': '"pay"', '"pay"': '"greet"'}
    text = re.sub("|".join(others), lambda found: others[found[0]], Path("dev.jsonl").read_text())
    Path("dev.jsonl").write_text(text)
    changes = {**WANTED, "agent__threshold": "precision:0.9"}
    _, shown = quietly_train(INTENTS, folder / "out", **changes)
    assert "dev: precision 0.9 was wanted, but no threshold reaches it: every text" in shown


def test_threshold_from_dev_needs_dev(folder):
    with pytest.raises(DialogError, match="chooses thresholds on dev data, but there is none"):
        quietly_train(INTENTS, folder / "out", **{**WANTED, "tasks__intents__dev": None})
