"""Labels that are in no candidate list are reported wherever they make scores about 0."""

import io
import json

import pytest

from tests.cli.conftest import run  # noqa: F401
from tests.training.examples import REPLIES, TALKS, write_talks
from thincdialog.api import debug_data, evaluate_in_detail, train

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
INLINE = RANKER.replace("Conversations.v1", "ParlAIText.v1").replace(
    'Ranker.v1"', 'Ranker.v1"\nignore_bad_candidates = true\neval_candidates = SOURCE'
)
SPEAKER = ('Conversations.v1"', 'Conversations.v1"\nlabel_speaker = "b"')
OUTSIDE = "100.0 % of 20 labels are in no candidate list, so they can never be chosen"
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


def test_unreachable_labels_are_reported_once_in_training_and_with_scores(folder, run):  # noqa: F811
    code, out, err = run("train ranker.cfg -o out")
    assert code == 0 and err.count("in no candidate list") == 1 and "no candidate list" not in out
    assert f"dev: {OUTSIDE}: {REMEDY}" in err
    code, out, err = run("evaluate out/model-best --split dev")
    assert code == 0 and f"dev: {OUTSIDE}: {REMEDY}" in err
    # The remedy helps: each label is ranked against other replies of its split.
    code, out, err = run("evaluate out/model-best --split dev --evaluation.n_candidates 5")
    assert code == 0 and "in no candidate list" not in err
    assert evaluate_in_detail("out/model-best", split="train").warning == ""
    code, out, err = run("train ranker.cfg -o out --force --evaluation.n_candidates 5")
    assert code == 0 and "in no candidate list" not in err


@pytest.mark.parametrize("known, expected", [(9, 1), (10, 0)])
def test_unreachable_labels_are_reported_if_they_are_more_than_half(folder, run, known, expected):  # noqa: F811
    talks(folder / "dev.jsonl", [f"{'reply' if n < known else 'other'} {n}" for n in range(20)])
    code, _, err = run("train ranker.cfg")
    assert code == 0 and err.count("in no candidate list") == expected
    warnings = debug_data("ranker.cfg").warnings
    assert [w.check for w in warnings if w.split == "dev"].count("candidates") == expected


def test_unreachable_labels_make_a_check_of_debug_data_fail(folder, run):  # noqa: F811
    report = debug_data("ranker.cfg")
    (warning,) = [w for w in report.warnings if w.split == "dev" and w.check == "candidates"]
    assert warning.text.startswith(f"{OUTSIDE}: 'other 0', 'other 1', 'other 2'")
    assert warning.hint.startswith(REMEDY) and "candidates" not in report.passed
    code, out, _ = run("debug data ranker.cfg")
    assert code == 0 and "\nin no candidate list  " in out and REMEDY in " ".join(out.split())
    report = debug_data("ranker.cfg", overrides={"evaluation.n_candidates": 5})
    assert "candidates" in report.passed


def test_unreachable_classes_are_reported_with_another_remedy(folder, run):  # noqa: F811
    classes(folder / "train.jsonl", ["yes", "no"] * 60)
    classes(folder / "dev.jsonl", ["yep", "no", "nope"] * 5)
    code, _, err = run("train classes.cfg")
    assert code == 0
    expected = (
        "dev: 66.7 % of 15 labels are not classes of the model, so it can never predict them: spell"
    )
    assert expected in err and "n_candidates" not in err


@pytest.mark.parametrize(
    "source, fixed, expected",
    [
        # The candidates of a batch include each label.
        ('"batch"', None, ""),
        ('"batch_all"', None, ""),
        ("null", None, "put each label among the label_candidates of its example"),
        ('"inline"', None, "put each label among the label_candidates of its example"),
        ('"fixed"', None, "leave out eval_candidates in [agent] and set n_candidates = 100"),
        ('"vocab"', None, "leave out eval_candidates in [agent] and set n_candidates = 100"),
        # With "fixed", candidates of examples are not used; with "inline", fixed ones are not.
        ('"fixed"', ["other 1", "other 2"], ""),
        ('"inline"', ["other 1", "other 2"], "put each label among"),
    ],
)
def test_unreachable_labels_are_those_that_the_setting_leaves_out(folder, source, fixed, expected):
    """Training, `debug data` and evaluation report the same labels. hits@1 is 0 if all labels are
    reported."""
    replies = [f"reply {n}" for n in range(20)]
    for split, end in (("train", ""), ("dev", "\tlabel_candidates:reply 1|reply 2")):
        labels = replies if split == "train" else ["other 1"] * 20
        rows = (f"text:hi {n}\tlabels:{x}{end}\tepisode_done:True\n" for n, x in enumerate(labels))
        (folder / f"{split}.jsonl").write_text("".join(rows))
    config = INLINE.replace("SOURCE", source)
    if fixed is not None:
        (folder / "fixed.txt").write_text("\n".join([*fixed, *replies]))
        config = config.replace("eval_can", 'fixed_candidates = "fixed.txt"\neval_can')
    (folder / "inline.cfg").write_text(config)
    stderr = io.StringIO()
    train("inline.cfg", output="out", stdout=io.StringIO(), stderr=stderr)
    told = [line for line in stderr.getvalue().splitlines() if "in no candidate list" in line]
    warnings = [w for w in debug_data("inline.cfg").warnings if w.split == "dev"]
    of_data = [w.hint for w in warnings if "in no candidate list" in w.text]
    found = evaluate_in_detail("out/model-best", split="dev", n_resamples=0)
    if not expected:
        assert not told and not of_data and not found.warning
        return
    assert len(told) == 1 and found.warning in told[0]
    assert found.warning.startswith(f"{OUTSIDE}: {expected}") and found.scores["hits@1"] == 0
    # Before training, the candidates of "vocab" are not known.
    assert [found.warning.partition(": ")[2]] == of_data or source == '"vocab"'


def test_unreachable_labels_do_not_include_the_reject_class(folder, run):  # noqa: F811
    classes(folder / "train.jsonl", ["yes", "no"] * 60)
    classes(folder / "dev.jsonl", ["other"] * 15)
    rejects = '--agent.reject_class "other" --agent.threshold 0.9'
    code, _, err = run(f"train classes.cfg {rejects}")
    assert code == 0 and "not classes of the model" not in err
