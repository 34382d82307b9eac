"""Scores at the end of a run: a stream has the same intervals as data in memory."""

import json
import shutil

import pytest

from tests.processes import slow
from tests.training.examples import RANKER, quietly_train

DYNAMIC = [("BatchWorld", "DynamicBatchWorld"), ('Fixed.v1"\nsize = 16', 'Batchsort.v1"\nsize = 4')]
ENDS = {"training__max_steps": 4, "training__checkpoint_every_steps": 2}


def found(folder):
    """Return the saved scores and intervals, and the model card up to the section about data, which
    has one more row for data in memory."""
    facts = json.loads((folder / "scores.json").read_text())
    card = (folder / "model-best" / "README.md").read_text()
    return facts["scores"], facts["intervals"], card.partition("## Data")[0]


@pytest.mark.parametrize("changes", [[], slow(DYNAMIC)], ids=["batches", "dynamic"])
def test_final_scores_of_a_stream_have_the_intervals_of_data_in_memory(tmp_path, changes):
    text = RANKER
    for old, new in changes:
        text = text.replace(old, new)
    stream = text.replace("n_train = 34", "n_train = 34\nstreaming = true")
    quietly_train(text, tmp_path / "held", **ENDS)
    expected = found(tmp_path / "held")
    assert {"hits@1", "mrr"} <= set(expected[1]["dev"]) == set(expected[1]["test"])
    quietly_train(stream, tmp_path / "stream", **ENDS)
    assert found(tmp_path / "stream") == expected
    # Resume after the last step: a complete run, and runs that were killed before they wrote their
    # scores or their model.
    for removed in (None, "scores.json", "model-best"):
        if removed == "scores.json":
            (tmp_path / "stream" / removed).unlink()
        elif removed:
            shutil.rmtree(tmp_path / "stream" / removed)
        quietly_train(stream, tmp_path / "stream", resume=True, **ENDS)
        assert found(tmp_path / "stream") == expected


def test_final_scores_of_a_long_stream_have_no_intervals(tmp_path, monkeypatch):
    monkeypatch.setattr("thincdialog.evaluation.final_scores.MOST_EXAMPLES", 65)
    stream = RANKER.replace("n_test = 10", "n_test = 12\nstreaming = true")
    result, _ = quietly_train(stream, tmp_path, training__max_steps=1)
    # Only "test" is longer than 65.
    n = {split: scores["examples"] for split, scores in result.scores.items()}
    assert n == {"dev": 62, "test": 73} and list(result.intervals) == ["dev"]
