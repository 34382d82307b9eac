import importlib.util
import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.errors import ConfigError
from thincdialog.messages import Message, MessageBatch
from thincdialog.metrics import higher_is_better, merge_reports, report_values
from thincdialog.metrics.words import normalize_answer
from thincdialog.registry import registry

NEEDS_SACREBLEU = pytest.mark.skipif(
    importlib.util.find_spec("sacrebleu") is None, reason="needs sacrebleu"
)
FAMILIES = [
    *((name, {}) for name in ("Accuracy", "F1", "Ranking", "ClassF1", "TokenScores", "RougeL")),
    *((name, {}) for name in ("DistinctN", "AUC")),
    ("Accuracy", {"normalize": False}),
    ("Ranking", {"ks": [2], "normalize": True}),
    ("DistinctN", {"ns": [1, 3], "per": "ngrams"}),
    pytest.param("BLEU", {}, marks=NEEDS_SACREBLEU),
    pytest.param("BLEU", {"smooth_method": "add-k"}, marks=NEEDS_SACREBLEU),
]
EVERY = pytest.mark.parametrize("name, settings", FAMILIES)


def build(name, **settings):
    return registry.metrics.get(f"thincdialog.{name}.v1")(**settings)


def count(name, rows, **settings):
    metric = build(name, **settings)
    for labels, reply in rows:
        metric.add(labels, Message(reply))
    return report_values(metric.report())


texts = st.sampled_from(["", "a", "The cat", "the cat.", "cat sat", "sat cat sat", "non", "Ünï !"])
examples = st.tuples(
    st.lists(texts, min_size=1, max_size=3),
    st.fixed_dictionaries(
        {"n_tokens_correct": st.integers(0, 3), "token_loss": st.floats(0, 50)},
        optional={
            "text": texts,
            "text_candidates": st.lists(texts, max_size=4),
            "n_tokens": st.integers(3, 9),
            "classes": st.just(("a", "The cat", "non")),
            "probabilities": st.tuples(*[st.sampled_from([0.0, 0.1, 0.25, 0.7])] * 3),
        },
    ).map(Message),
)


@EVERY
@given(st.lists(examples), st.randoms())
def test_example_metric_any_order_batch_and_worker_same_bits(name, settings, rows, random):
    in_order = build(name, **settings)
    for labels, reply in rows:
        in_order.add(labels, reply)
    workers = [in_order.fresh() for _ in range(3)]
    shuffled = random.sample(rows, len(rows))
    while shuffled:
        n = random.randint(1, 3)
        batch, shuffled = shuffled[:n], shuffled[n:]
        random.choice(workers).add_batch([labels for labels, _ in batch], [r for _, r in batch])
    random.shuffle(workers)
    by_reports = merge_reports(*(worker.report() for worker in workers))
    assert in_order.report() == by_reports
    bits = {name: value.hex() for name, value in report_values(in_order.report()).items()}
    assert bits == {name: value.hex() for name, value in report_values(by_reports).items()}


@EVERY
def test_example_metric_fresh_and_reset_are_empty(name, settings):
    metric = build(name, **settings)
    empty = metric.report()
    tokens = {"n_tokens": 1, "n_tokens_correct": 1, "token_loss": 0.5}
    classes = {"classes": ["yes", "no"], "probabilities": [0.75, 0.25]}
    metric.add(["yes"], Message(text="yes", **tokens, **classes))
    counted = metric.report()
    assert counted != empty
    assert metric.fresh().report() == empty
    assert metric.report() == counted
    metric.reset()
    assert metric.report() == empty


@EVERY
def test_example_metric_every_name_has_a_direction(name, settings):
    for key, metric in build(name, **settings).report().items():
        expected = key != "perplexity"
        assert higher_is_better(key) is expected
        assert higher_is_better(key, metric) is expected


@EVERY
def test_example_metric_columns_and_messages_agree(name, settings):
    columns = {
        "text": ["yes", None, "no"],
        "text_candidates": [["no", "yes"], None, None],
        "n_tokens": [4, None, 2],
        "n_tokens_correct": [3, None, 0],
        "token_loss": [0.25, None, 1.5],
        "classes": [["yes", "no"], None, ["yes", "no"]],
        "probabilities": [[0.5, 0.5], None, [0.25, 0.75]],
    }
    labels = [["yes"], ["yes"], ["maybe", "no"]]
    batch = MessageBatch(columns, 3)
    by_columns, by_messages = build(name, **settings), build(name, **settings)
    by_columns.add_batch(labels, batch)
    by_messages.add_batch(labels, list(batch))
    assert by_columns.report() == by_messages.report()


@pytest.mark.parametrize(
    "text, expected",
    [
        ("The  cat, a dog", "cat dog"), ("an-other", "other"), ("it's", "it s"), ("there", "there"),
        ("THE", ""), ("你好。", "你好。"),
    ],
)  # fmt: skip
def test_normalize_answer_is_parlais(text, expected):
    assert normalize_answer(text) == expected


def test_accuracy_counts_missing_text_as_wrong():
    rows = [(["yes"], {"text": "Yes!"}), (["", "b"], {}), (["no"], {"text": "yes"})]
    assert count("Accuracy", rows) == {"accuracy": 1 / 3}
    assert count("Accuracy", rows, normalize=False) == {"accuracy": 0.0}


def test_f1_takes_each_score_over_the_labels_separately():
    rows = [(["cat", "cat sat on mat with hat"], {"text": "the cat sat on rug"})]
    scores = count("F1", rows)
    # Against "cat": p 1/4, r 1, f1 2/5. Against the other label: p 3/4, r 3/6, f1 6/10.
    assert scores == {"precision": 0.75, "recall": 1.0, "f1": 0.6}


@given(texts, texts)
def test_f1_bounds_and_symmetry(left, right):
    there = count("F1", [([left], {"text": right})])
    back = count("F1", [([right], {"text": left})])
    assert there["f1"] == back["f1"]
    assert there["precision"] == back["recall"]
    assert 0.0 <= min(there.values()) <= there["f1"] <= max(there.values()) <= 1.0


def test_ranking_counts_places():
    rows = [
        (["b"], {"text_candidates": ["a", "b", "c"]}),
        (["c", "a"], {"text_candidates": ["a", "b", "c"]}),
        (["x"], {"text_candidates": ["a", "b", "c"]}),
        (["yes"], {"text": "yes"}),
        (["yes"], {}),
    ]
    scores = count("Ranking", rows, ks=[1, 2])
    assert scores == {"hits@1": 2 / 5, "hits@2": 3 / 5, "mrr": (0.5 + 1 + 0 + 1) / 5}


def test_ranking_normalize_lets_case_pass():
    rows = [(["Yes."], {"text_candidates": ["yes", "Yes."]})]
    assert count("Ranking", rows)["hits@1"] == 0.0
    assert count("Ranking", rows, normalize=True)["hits@1"] == 1.0


@pytest.mark.parametrize("ks", [[], [0], [1, -5]])
def test_ranking_refuses_ks_below_one(ks):
    with pytest.raises(ConfigError, match="ks"):
        build("Ranking", ks=ks)


classes = st.sampled_from("abcde")


@given(st.lists(st.tuples(classes, classes), min_size=1))
def test_class_f1_equals_the_slow_formula(pairs):
    scores = count("ClassF1", [([true], {"text": found}) for true, found in pairs])
    f1 = {}
    for name in {name for pair in pairs for name in pair}:
        right = sum(true == found == name for true, found in pairs)
        precision = right / max(1, sum(found == name for _, found in pairs))
        recall = right / max(1, sum(true == name for true, _ in pairs))
        f1[name] = 2 * precision * recall / (precision + recall) if right else 0.0
    n = Counter(true for true, _ in pairs)
    assert scores["macro_f1"] == pytest.approx(sum(f1.values()) / len(f1), abs=1e-12)
    weighted = sum(f1[name] * n[name] for name in f1) / len(pairs)
    assert scores["weighted_f1"] == pytest.approx(weighted, abs=1e-12)


def test_class_f1_several_labels_and_no_answer():
    rows = [(["a", "b"], {"text": "b"}), (["a"], {})]
    # Class a: one example, never predicted. Class b: one example, predicted.
    assert count("ClassF1", rows) == {"macro_f1": 0.5, "weighted_f1": 0.5}


def test_token_scores_weigh_tokens_not_examples():
    rows = [
        (["x"], {"n_tokens": 1, "n_tokens_correct": 1, "token_loss": 0.0}),
        (["x"], {"n_tokens": 3, "n_tokens_correct": 0, "token_loss": 4 * math.log(2)}),
        (["x"], {"text": "no tokens here"}),
    ]
    scores = count("TokenScores", rows)
    assert scores["token_accuracy"] == 0.25
    assert scores["perplexity"] == pytest.approx(2.0)
