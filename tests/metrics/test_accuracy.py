"""The accuracy of a classifier distinguishes labels that ParlAI's normalisation makes equal."""

import json

import pytest

from tests.training.examples import CLASSIFIER, REPLIES, quietly_train
from thincdialog.api import Experiment

TASK = """
[tasks.signs]
@teachers = "thincdialog.LabelledText.v1"
train = "{path}"
dev = "{path}"

[baselines.frequent]
@agents = "thincdialog.MostFrequent.v1"

[training]
max_steps = 1
n_samples = 0
score = "accuracy"

[training.optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.0
"""
NORMALIZES = '[evaluation.metrics.accuracy]\n@metrics = "thincdialog.Accuracy.v1"\nnormalize = {}\n'


def config(tmp_path, labels, agent=CLASSIFIER, more=""):
    rows = [{"text": f"word{n}", "label": labels[n % 2]} for n in range(8)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return TASK.format(path=path) + agent + more


@pytest.mark.parametrize("labels", ["+ -", ":) :(", "-1 1", "C C++", "The a"])
def test_accuracy_of_a_classifier_distinguishes_all_labels(tmp_path, labels):
    result, _ = quietly_train(config(tmp_path, labels.split()))
    for report in (result.scores["dev"], result.baselines["frequent"]["dev"]):
        # The weights are the initial ones, and all replies are the same class.
        assert report["accuracy"] == report["hits@1"] == 0.5
    assert result.scores["dev"]["macro_f1"] == pytest.approx(1 / 3)


def test_accuracy_of_a_classifier_is_normalised_if_the_config_says_it(tmp_path):
    result, _ = quietly_train(config(tmp_path, "+-", more=NORMALIZES.format("true")))
    assert result.scores["dev"]["accuracy"] == 1


def test_accuracy_of_a_ranker_is_still_normalised(tmp_path):
    for said, wanted in (("", True), (NORMALIZES.format("null"), True),
                         (NORMALIZES.format("false"), False)):  # fmt: skip
        experiment = Experiment.from_config(config(tmp_path, "+-", REPLIES, said))
        metric = experiment.metrics[0].fresh()
        metric.add(["Yes."], {"text": "yes"})
        assert metric.report()["accuracy"].value() == wanted
