"""hits@k counts the first k candidates of a ranking, also for k above 100."""

import json

import pytest

from tests.training.examples import quietly_train

TASK = """[tasks.numbers]
@teachers = "thincdialog.LabelledText.v1"
train = "{path}"
dev = "{path}"

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.{agent}.v1"

[agent.model]
@models = "thincdialog.{model}.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = 8

[baselines.frequent]
@agents = "thincdialog.MostFrequent.v1"

[baselines.random]
@agents = "thincdialog.RandomCandidate.v1"

[evaluation.metrics.ranking]
@metrics = "thincdialog.Ranking.v1"
ks = {ks}

[training]
max_steps = 1
n_samples = 0
score = "mrr"
"""
N = 130


def scores(tmp_path, ks, agent):
    rows = [{"text": f"word{n} here", "label": f"answer {n}"} for n in range(N)]
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    model = {"Ranker": "BiEncoder", "Classifier": "Classifier"}[agent]
    config = TASK.format(path=path, ks=json.dumps(ks), agent=agent, model=model)
    candidates = {"agent__eval_candidates": "fixed"} if agent == "Ranker" else {}
    result, _ = quietly_train(config, **candidates)
    return {"model": result.scores, **result.baselines}


@pytest.mark.parametrize("agent", ["Ranker", "Classifier"])
def test_hits_at_k_above_100_are_counted_to_k(tmp_path, agent):
    found = scores(tmp_path, [100, N - 10, N], agent)
    usual = scores(tmp_path, [100], agent)
    for name, splits in found.items():
        report = splits["dev"]
        assert report["hits@100"] < 1
        # All labels are different: MostFrequent ranks them in alphabetical order.
        assert report["hits@100"] < report[f"hits@{N}"] == 1, name
        assert report["hits@100"] <= report[f"hits@{N - 10}"] < 1, name
        if name != "random":  # Its random draws depend on the number of candidates.
            assert report["hits@100"] == usual[name]["dev"]["hits@100"]
            assert report["mrr"] == usual[name]["dev"]["mrr"]
