"""Comparison of models: it finds differences where there are some, and only there, for any order of
the examples."""

import json
import random

import numpy
import pytest

from thincdialog.api import DataError, OutputError, compare, read_predictions, write_predictions
from thincdialog.evaluation.comparison import MetricDifference, two_sided
from thincdialog.evaluation.predictions import Prediction
from thincdialog.messages import Message
from thincdialog.registry import registry

METRICS = [registry.metrics.get("thincdialog.Accuracy.v1")()]


def predictions(right, n_turns=1, task=""):
    return [
        Prediction(
            id=f"{n // n_turns}/{n % n_turns}" if n_turns > 1 else str(n),
            labels=["yes"],
            reply=Message(text="yes" if is_right else "no"),
            text="?",
            task=task,
            conversation=str(n // n_turns),
        )
        for n, is_right in enumerate(right)
    ]


def write(path, rows, metrics=METRICS):
    assert write_predictions(path, rows, metrics) == len(rows)
    return path


def difference(tmp_path, a, b, **settings):
    one, other = write(tmp_path / "a.jsonl", a), write(tmp_path / "b.jsonl", b)
    found = compare(one, other, **settings)
    (only,) = found.differences
    assert only.metric == "accuracy"
    return only, found


def test_compare_of_equal_replies_finds_no_difference(tmp_path):
    rows = predictions([n % 3 > 0 for n in range(90)])
    only, found = difference(tmp_path, rows, rows)
    assert (only.difference, only.low, only.high, only.p_value) == (0.0, 0.0, 0.0, 1.0)
    assert only.a == only.b == 60 / 90
    assert only.verdict() == "no significant difference in accuracy was found"
    assert (found.n_drawn, found.n_examples, found.drawn) == (90, 90, "examples")


def test_compare_finds_a_shift_either_way(tmp_path):
    a = predictions([n % 10 < 6 for n in range(1000)])
    b = predictions([n % 10 < 7 for n in range(1000)])
    better, _ = difference(tmp_path, a, b)
    assert (better.a, better.b, better.winner) == (0.6, 0.7, "B")
    # 100 of 1,000 examples went from wrong to right and none from right to wrong: binomial.
    width = 1.96 * (0.1 * 0.9 / 1000) ** 0.5
    assert better.low == pytest.approx(0.1 - width, abs=0.004)
    assert better.high == pytest.approx(0.1 + width, abs=0.004)
    assert better.p_value == 2 / 1001
    low, high = (f"{100 * end:.3g}" for end in (better.low, better.high))
    expected = f"B is better in accuracy by 10 points (95 % interval {low} to {high})"
    assert better.verdict() == expected
    worse, _ = difference(tmp_path, b, a)
    assert (worse.winner, worse.low, worse.high) == ("A", -better.high, -better.low)


def test_compare_is_paired(tmp_path):
    """Model B is right for eight more of 500 examples, which is far less than the width of either
    model's own interval."""
    draw = random.Random(0)
    a = [draw.random() < 0.6 for _ in range(500)]
    wrong = [n for n, right in enumerate(a) if not right][:8]
    b = [right or n in wrong for n, right in enumerate(a)]
    found, _ = difference(tmp_path, predictions(a), predictions(b))
    assert found.winner == "B" and found.difference == pytest.approx(8 / 500)


@pytest.mark.slow
def test_compare_of_equal_models_rarely_finds_a_difference(tmp_path):
    """Two models are right with a probability of 0.7, by chance. About 5 of 100 comparisons may
    find a difference."""
    chance = numpy.random.default_rng(5)
    found = 0
    for _ in range(100):
        a, b = (predictions(chance.random(120) < 0.7) for _ in "ab")
        found += bool(difference(tmp_path, a, b, n_resamples=300)[0].winner)
    assert found <= 12


def test_compare_draws_conversations_whole(tmp_path):
    """All turns of 12 of 40 conversations got better. The interval is that of 12 in 40, not that of
    60 in 200."""
    a = predictions([False] * 200, n_turns=5)
    b = predictions([n < 60 for n in range(200)], n_turns=5)
    only, found = difference(tmp_path, a, b)
    assert (found.drawn, found.n_drawn, found.n_examples) == ("conversations", 40, 200)
    half = (only.high - only.low) / 2
    assert half == pytest.approx(1.96 * (0.3 * 0.7 / 40) ** 0.5, rel=0.15)


def test_compare_pairs_by_id_whatever_the_order(tmp_path):
    a = predictions([n % 2 == 0 for n in range(100)])
    b = predictions([n % 2 == 0 or n == 1 for n in range(100)])
    in_order, _ = difference(tmp_path, a, b)
    shuffled = random.Random(1).sample(b, len(b))
    assert difference(tmp_path, a, shuffled)[0] == in_order


def test_compare_of_tasks(tmp_path):
    a = predictions([True] * 50, task="x") + predictions([False] * 50, task="y")
    b = predictions([True] * 50, task="x") + predictions([True] * 50, task="y")
    found = compare(write(tmp_path / "a", a), write(tmp_path / "b", b))
    shown = {one.metric: (one.a, one.b, one.winner) for one in found.differences}
    assert shown == {
        "accuracy": (0.5, 1.0, "B"),
        "macro/accuracy": (0.5, 1.0, "B"),
        "x/accuracy": (1.0, 1.0, ""),
        "y/accuracy": (0.0, 1.0, "B"),
    }
    with pytest.raises(DataError, match=r"their tasks differ \(x, y; x\)"):
        compare(tmp_path / "a", write(tmp_path / "b", a[:50]))


def test_compare_names_what_differs(tmp_path):
    rows = predictions([True] * 5)
    a = write(tmp_path / "a", rows)
    with pytest.raises(DataError, match="1 are only in the first, 0 only in the second, .* '4'"):
        compare(a, write(tmp_path / "b", rows[:4]))
    with pytest.raises(DataError, match="0 are only in the first, 2 only in the second, .* '3'"):
        compare(write(tmp_path / "b", rows[:3]), a)
    other = predictions([True] * 5)
    other[2].labels = ["no"]
    with pytest.raises(DataError, match=r"labels of '2' differ: \['yes'\] and \['no'\]"):
        compare(a, write(tmp_path / "b", other))
    few, many = predictions([True] * 5), predictions([True] * 5)
    few[0].n_candidates, many[0].n_candidates = 20, 100
    with pytest.raises(DataError, match="candidates of '0' differ: 20 and 100. Set"):
        compare(write(tmp_path / "c", few), write(tmp_path / "d", many))
    one = write(tmp_path / "one", rows[:1])
    with pytest.raises(DataError, match="on one conversation or example: give data with 2 or more"):
        compare(one, one)
    with pytest.raises(DataError, match="they have no metric in common"):
        compare(a, write(tmp_path / "b", rows, []))


def test_compare_verdict_uses_points_only_for_shares():
    lower = MetricDifference("x/perplexity", 20.0, 17.5, -2.5, -3.25, -1.0, 0.01, "B")
    expected = "B is better in x/perplexity by 2.5 (95 % interval 1 to 3.25)"
    assert lower.verdict() == expected
    share = MetricDifference("x/f1", 0.5, 0.25, -0.25, -0.5, -0.125, 0.01, "A")
    expected = "A is better in x/f1 by 25 points (95 % interval 12.5 to 50)"
    assert share.verdict() == expected
    unknown = MetricDifference("length", 1.0, 2.0, 1.0, 0.5, 1.5, 0.01, "?")
    assert unknown.verdict() == "A and B differ in length by 1 (95 % interval 0.5 to 1.5)"


def test_compare_p_value_of_known_draws():
    assert two_sided(numpy.zeros(99)) == 1.0
    assert two_sided(numpy.array([-1.0] * 9 + [1.0] * 90)) == pytest.approx(2 * 10 / 100)
    assert two_sided(numpy.ones(999)) == pytest.approx(2 / 1000)


def test_write_predictions_writes_all_or_nothing(tmp_path):
    rows = predictions([True, False])
    path = write(tmp_path / "new" / "p.jsonl", rows)
    before = path.read_text()

    def broken():
        yield rows[0]
        raise OSError(28, "No space left on device")

    with pytest.raises(OutputError, match="p.jsonl  cannot be written: No space left on device"):
        write_predictions(path, broken(), METRICS)
    assert path.read_text() == before and len(list(path.parent.iterdir())) == 1
    with pytest.raises(OutputError, match="cannot be written: Is a directory"):
        write_predictions(tmp_path, rows, METRICS)
    with pytest.raises(OutputError, match="No space left on device"):
        write_predictions("/dev/full", rows * 10000, METRICS)


def test_write_predictions_holds_everything(tmp_path):
    reply = Message(text="b\ud800", text_candidates=["b\ud800", "é"], candidate_scores=[2.0, -1.5])
    row = Prediction(
        id="4/1", labels=["é"], reply=reply, text="hi", context=[(0, "x"), (1, "y")],
        task="t", conversation="4", n_candidates=2,
    )  # fmt: skip
    path = write(tmp_path / "p.jsonl", [row], METRICS)
    expected = {
        "id": "4/1", "task": "t", "conversation": "4",
        "context": [{"speaker": "partner", "text": "x"}, {"speaker": "model", "text": "y"}],
        "text": "hi", "labels": ["é"], "reply": "b\ud800", "n_candidates": 2,
        "candidates": [{"text": "b\ud800", "score": 2.0}, {"text": "é", "score": -1.5}],
        "right": False, "metrics": {"accuracy": 0.0},
    }  # fmt: skip
    assert read_predictions(path) == [expected]
    write_predictions(tmp_path / "p.jsonl.gz", [row], METRICS)
    assert (tmp_path / "p.jsonl.gz").read_bytes()[:2] == b"\x1f\x8b"
    assert read_predictions(tmp_path / "p.jsonl.gz") == [expected]
    write_predictions(path, [row], METRICS, n_best=1)
    assert len(read_predictions(path)[0]["candidates"]) == 1


@pytest.mark.parametrize(
    "line, problem",
    [
        (b"{", "is not a JSON object"),
        (b"\xff", "not UTF-8: byte 1 is 0xff"),
        (b"[" * 100_000, "is not a JSON object"),
        (b"[]", "has no 'id'"),
        (b'{"id": 3, "labels": [], "metrics": {}}', "has no 'id'"),
        (b'{"id": "3", "labels": []}', "has no 'metrics'"),
        (b'{"id": "3", "labels": [], "metrics": {"f1": "1"}}', "'f1' is not a number: '1'"),
    ],
)
def test_read_predictions_names_the_line(tmp_path, line, problem):
    path = tmp_path / "p.jsonl"
    good = json.dumps({"id": "1", "labels": [], "metrics": {}}).encode()
    path.write_bytes(good + b"\n\n" + line + b"\n")
    with pytest.raises(DataError, match=f"p.jsonl:3  .*{problem}"):
        read_predictions(path)


def test_read_predictions_needs_a_file_with_lines(tmp_path):
    with pytest.raises(DataError, match="none  file not found"):
        read_predictions(tmp_path / "none")
    (tmp_path / "empty").write_text("\n")
    with pytest.raises(DataError, match="holds no predictions: write them with"):
        read_predictions(tmp_path / "empty")
