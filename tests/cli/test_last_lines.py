"""The last lines of ``train``: the score in words, how to try the model, what to do next."""

import json
from types import SimpleNamespace

import pytest

from tests.training.examples import CLASSIFIER, RANKER, REPLIES, TALKS, write_talks
from tests.training.two_tasks import TWO_TASKS
from thincdialog.cli.last_lines import in_words

QUICK = "--training.max_steps 2 --training.n_samples 0"
PROGRAM = "python -m thincdialog"
LABELLED = TALKS.replace("Conversations.v1", "LabelledText.v1") + CLASSIFIER
END = '\n[training]\nscore = "{}"\n'


@pytest.fixture
def last(run_small, tmp_path):
    """Return a function that trains on a config. It returns the lines after "Saved ...", and the
    scores."""

    def train(config, options=""):
        (tmp_path / "b.cfg").write_text(config)
        code, _, err = run_small(f"train b.cfg --force {QUICK} {options}")
        assert code == 0, err
        lines = err.splitlines()
        scores = json.loads((tmp_path / "output" / "b" / "scores.json").read_text())["scores"]
        return lines[lines.index("✔ Saved output/b/model-best") + 1 :], scores

    return train


def talks(folder, n_dev=3):
    for split, n in (("train", 20), ("dev", n_dev), ("test", 5)):
        write_talks(folder / f"{split}.jsonl", [("hi", f"reply {number}") for number in range(n)])


def test_last_lines_of_a_ranker_on_generated_data(last):
    lines, scores = last(RANKER)
    value = scores["test"]["hits@1"]
    assert lines == [
        f"ℹ hits@1 = {value:.3f}: for {100 * value:.1f} % of the 62 test examples, the model "
        "ranked the right reply first among 20 candidates.",
        f"ℹ Talk to it: {PROGRAM} chat output/b/model-best",
        f"ℹ Train on your own data: {PROGRAM} init config ranker.cfg",
    ]


def test_last_lines_of_a_ranker_on_files(last, tmp_path):
    talks(tmp_path)
    lines, scores = last(TALKS + REPLIES + END.format("hits@1"), "--paths.test null")
    value, n = scores["dev"]["hits@1"], int(scores["dev"]["examples"])
    assert lines[0].startswith(f"ℹ hits@1 = {value:.3f}: for {100 * value:.1f} % of the {n} dev ")
    assert lines[0].endswith("ranked the right reply first among 20 candidates.")
    assert lines[2:] == [
        f"ℹ Measure it in detail: {PROGRAM} evaluate output/b/model-best --split dev"
    ]


def test_last_lines_name_no_number_of_candidates_that_differs(last, tmp_path):
    for split in ("train", "dev", "test"):
        ends = ["a|b", "a|b|c"] * 2
        rows = [f"text:hi\tlabels:a\tlabel_candidates:{end}\tepisode_done:True\n" for end in ends]
        (tmp_path / f"{split}.jsonl").write_text("".join(rows))
    config = TALKS.replace("Conversations.v1", "ParlAIText.v1") + REPLIES + END.format("hits@1")
    lines, _ = last(config.replace('Ranker.v1"', 'Ranker.v1"\ncandidates = "inline"'))
    assert lines[0].endswith(
        "% of the 4 test examples, the model ranked the right reply first among its candidates."
    )


def test_last_lines_of_a_classifier(last, tmp_path):
    for split in ("train", "dev", "test"):
        rows = [{"text": f"word {n}", "label": "ab"[n % 2]} for n in range(8)]
        (tmp_path / f"{split}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines, scores = last(LABELLED + END.format("accuracy"))
    value = scores["test"]["accuracy"]
    assert lines == [
        f"ℹ accuracy = {value:.3f}: for {100 * value:.1f} % of the 8 test examples, the model "
        "predicted the right class.",
        f"ℹ Classify a text: echo 'Hello!' | {PROGRAM} predict output/b/model-best -",
        f"ℹ Measure it in detail: {PROGRAM} evaluate output/b/model-best --split test",
    ]
    # Without dev and test data there is no score, so evaluate is not suggested.
    lines, _ = last(LABELLED + END.format("accuracy"), "--paths.dev null --paths.test null")
    assert lines[0].startswith("ℹ There is no score, because there is no dev or test data: ")
    assert lines[1].startswith("ℹ Classify a text: ") and len(lines) == 2


@pytest.mark.parametrize(
    "score, end",
    [("f1", ": higher is better."), ("loss", ": lower is better."), ("tokens", ".")],
)
def test_last_lines_of_other_scores_say_which_way_is_better(last, score, end):
    lines, scores = last(RANKER.replace('"hits@1"', f'"{score}"\nscore_direction = "max"'))
    assert lines[0] == f"ℹ {score} = {scores['test'][score]:.3f} on the test data{end}"


def test_last_lines_of_several_tasks(last):
    lines, scores = last(TWO_TASKS)
    value = scores["test"]["macro/hits@1"]
    assert lines[0] == f"ℹ macro/hits@1 = {value:.3f} on the test data: higher is better."
    lines, _ = last(TWO_TASKS.replace("macro/", ""))
    assert "% of the 37 test examples, the model ranked the right reply first " in lines[0]


def test_last_lines_with_json_stay_away_from_stdout(run_small):
    code, out, err = run_small(f"train a.cfg --json {QUICK}")
    assert code == 0 and "ℹ" not in out and json.loads(out)["choices"] == {"20": 62}
    assert [line[0] for line in err.splitlines()[-4:]] == ["✔", "ℹ", "ℹ", "ℹ"]


def test_last_lines_without_output(run_small):
    code, out, err = run_small(f"train a.cfg --no-output {QUICK}")
    score, kept = err.splitlines()[-2:]
    assert score.startswith("ℹ hits@1 = ") and score.endswith("first among 20 candidates.")
    assert kept == "ℹ The model was not kept, because of --no-output."


@pytest.mark.parametrize(
    "value, shown", [(0.1215, "0.121: for 12.1 %"), (0.2195, "0.220: for 22.0 %")]
)
def test_last_lines_round_a_score_once(value, shown):
    result = SimpleNamespace(
        score_name="accuracy", scores={"test": {"accuracy": value}}, choices={5: 2000}
    )
    result.has_classes = True
    assert shown in in_words(result, "test")
