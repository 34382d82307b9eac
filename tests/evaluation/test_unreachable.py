"""Labels that are among nobody's candidates are told of wherever scores are about 0 by them."""

import json

import pytest

from tests.cli.conftest import run  # noqa: F401
from tests.training.examples import REPLIES, TALKS, write_talks
from thincdialog.api import debug_data, evaluate_in_detail

RANKER = (
    TALKS.replace('"test.jsonl"', "null")
    + REPLIES
    + """
[training]
max_steps = 2
score = "hits@1"
n_samples = 0
"""
)
CLASSIFIER = (
    RANKER.replace("Conversations.v1", "LabelledText.v1")
    .replace("Ranker.v1", "Classifier.v1")
    .replace("BiEncoder.v1", "Classifier.v1")
    .replace("hits@1", "accuracy")
)
SPEAKER = ('Conversations.v1"', 'Conversations.v1"\nlabel_speaker = "b"')
OUTSIDE = "100.0 % of 20 labels are among nobody's candidates and can never be given"
REMEDY = "set n_candidates = 100 in [evaluation]"


def talks(path, replies):
    write_talks(path, [("hi", text) for text in replies])


def classes(path, names):
    rows = ({"text": f"words {n}", "label": name} for n, name in enumerate(names))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ranker.cfg").write_text(
        RANKER.replace('v1"\ntrain', 'v1"\nlabel_speaker = "b"\ntrain')
    )
    (tmp_path / "classes.cfg").write_text(CLASSIFIER)
    talks(tmp_path / "train.jsonl", [f"reply {n}" for n in range(120)])
    talks(tmp_path / "dev.jsonl", [f"other {n}" for n in range(20)])
    return tmp_path


def test_unreachable_labels_are_told_of_once_in_training_and_below_scores(folder, run):  # noqa: F811
    code, out, err = run("train ranker.cfg -o out")
    assert code == 0 and err.count("nobody's candidates") == 1 and "nobody" not in out
    assert f"dev: {OUTSIDE}: {REMEDY}" in err
    code, out, err = run("evaluate out/model-best --split dev")
    assert code == 0 and f"dev: {OUTSIDE}: {REMEDY}" in err
    # What the remedy is worth: each label stands among other replies of its split.
    code, out, err = run("evaluate out/model-best --split dev --evaluation.n_candidates 5")
    assert code == 0 and "nobody" not in err
    assert evaluate_in_detail("out/model-best", split="train").warning == ""
    code, out, err = run("train ranker.cfg -o out --force --evaluation.n_candidates 5")
    assert code == 0 and "nobody" not in err


@pytest.mark.parametrize("known, expected", [(9, 1), (10, 0)])
def test_unreachable_labels_count_from_more_than_half(folder, run, known, expected):  # noqa: F811
    talks(folder / "dev.jsonl", [f"{'reply' if n < known else 'other'} {n}" for n in range(20)])
    code, _, err = run("train ranker.cfg")
    assert code == 0 and err.count("nobody's candidates") == expected
    warnings = debug_data("ranker.cfg").warnings
    assert [w.check for w in warnings if w.split == "dev"].count("candidates") == expected


def test_unreachable_labels_make_a_check_of_debug_data_fail(folder, run):  # noqa: F811
    report = debug_data("ranker.cfg")
    (warning,) = [w for w in report.warnings if w.split == "dev" and w.check == "candidates"]
    assert warning.text.startswith(
        "20 examples (100.0 %) have a label that is among nobody's candidates"
    )
    assert warning.hint.startswith(REMEDY) and "candidates" not in report.passed
    code, out, _ = run("debug data ranker.cfg")
    assert code == 0 and "nobody's candidate " in out and REMEDY in out
    report = debug_data("ranker.cfg", overrides={"evaluation.n_candidates": 5})
    assert "candidates" in report.passed


def test_unreachable_classes_are_told_of_with_another_remedy(folder, run):  # noqa: F811
    classes(folder / "train.jsonl", ["yes", "no"] * 60)
    classes(folder / "dev.jsonl", ["Yes", "no", "No"] * 5)
    code, _, err = run("train classes.cfg")
    assert code == 0
    expected = (
        "dev: 66.7 % of 15 labels are no class of the model, which can never find them: spell"
    )
    assert expected in err and "n_candidates" not in err
