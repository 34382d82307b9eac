"""BLEU, ROUGE-L, distinct n-grams, AUC: compared with other libraries and with slow formulas."""

import itertools
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.errors import ConfigError, MissingPackageError
from thincdialog.messages import Message
from thincdialog.metrics import higher_is_better, report_values
from thincdialog.metrics.rouge_l import n_in_common, rouge_l
from thincdialog.metrics.words import word_list
from thincdialog.registry import registry

WORDS = "the cat sat on a mat , and The dog didn't sit . 12 caf\u00e9".split()


def scores(name, rows, **settings):
    metric = registry.metrics.get(f"thincdialog.{name}.v1")(**settings)
    for labels, reply in rows:
        metric.add(labels, Message(reply))
    return report_values(metric.report())


def replies(texts):
    """Make replies. Without words, a reply has no text field."""
    return [{"text": text} if text else {} for text in texts]


def sentences(n, seed, longest=12):
    draw = random.Random(seed)
    return [" ".join(draw.choices(WORDS, k=draw.randint(0, longest))) for _ in range(n)]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"lowercase": True, "tokenize": "intl"},
        {"tokenize": "char", "max_ngram_order": 6},
        {"tokenize": "none", "smooth_method": "none"},
        {"smooth_method": "floor", "smooth_value": 0.3},
        {"smooth_method": "add-k"},
        {"effective_order": True, "max_ngram_order": 2},
    ],
)
@pytest.mark.parametrize("n, longest", [(40, 12), (5, 3), (1, 2)])
def test_bleu_equals_sacrebleu(settings, n, longest):
    sacrebleu = pytest.importorskip("sacrebleu")
    texts = sentences(n, 0, longest)
    labels = [sentences(1 + k % 3, k, longest) for k in range(n)]
    # References in the format of sacrebleu: a list of the first ones, of the second, and of the
    # third.
    references = [[row[i] if i < len(row) else None for row in labels] for i in range(3)]
    expected = sacrebleu.BLEU(**settings).corpus_score(texts, references)
    assert scores("BLEU", zip(labels, replies(texts)), **settings) == {"bleu": expected.score}


def test_bleu_explains_invalid_settings(monkeypatch):
    pytest.importorskip("sacrebleu")
    with pytest.raises(ConfigError, match="'tokenize' of thincdialog.BLEU.v1 is 'words'.*13a"):
        scores("BLEU", [], tokenize="words")
    with pytest.raises(ConfigError, match="max_ngram_order"):
        scores("BLEU", [], max_ngram_order=0)
    monkeypatch.setitem(__import__("sys").modules, "sacrebleu", None)
    with pytest.raises(MissingPackageError, match=r"pip install 'thincdialog\[bleu\]'"):
        scores("BLEU", [])


def common_slowly(left, right):
    """Return the length of the longest common subsequence, by trying all."""
    for length in range(len(left), 0, -1):
        for chosen in itertools.combinations(left, length):
            rest = iter(right)
            if all(word in rest for word in chosen):
                return length
    return 0


few_words = st.lists(st.sampled_from("abcd"), max_size=8)


@given(few_words, few_words)
def test_rouge_l_equals_trying_all_subsequences(left, right):
    n = common_slowly(left, right)
    assert n_in_common(left, right) == n == n_in_common(right, left)
    expected = (0.0, 0.0, 0.0)
    if n:
        p, r = n / len(left), n / len(right)
        expected = (2 * p * r / (p + r), p, r)
    assert rouge_l(left, right) == pytest.approx(expected)


def test_rouge_l_equals_rouge_score():
    rouge_scorer = pytest.importorskip("rouge_score.rouge_scorer")
    scorer = rouge_scorer.RougeScorer(["rougeL"])
    texts = [text.replace("\u00e9", "e") for text in sentences(200, 1, 40)]
    labels = [
        [text.replace("\u00e9", "e") for text in sentences(1 + k % 3, k, 40)] for k in range(200)
    ]
    best = [scorer.score_multi(row, text)["rougeL"] for row, text in zip(labels, texts)]
    found = scores("RougeL", zip(labels, replies(texts)))
    for name, field in (("", "fmeasure"), ("_precision", "precision"), ("_recall", "recall")):
        expected = sum(getattr(score, field) for score in best) / len(best)
        assert found[f"rouge_l{name}"] == pytest.approx(expected, abs=1e-12)


def test_word_list_reads_all_scripts():
    assert word_list("It's 12_3, Caf\u00e9 \u4f60\u597d!") == (
        "it", "s", "12", "3", "caf\u00e9", "\u4f60\u597d",
    )  # fmt: skip


def test_distinct_n_counts_over_all_replies():
    rows = [(["x"], {"text": text}) for text in ("I don't know", "I know .", "")] + [(["x"], {})]
    # i don t know | i know: 4 of 6 words are distinct; i don, don t, t know, i know: 4 pairs.
    assert scores("DistinctN", rows) == {"distinct_1": 4 / 6, "distinct_2": 4 / 6}
    by_ngrams = scores("DistinctN", rows, ns=[2, 3], per="ngrams")
    assert by_ngrams == {"distinct_2": 1.0, "distinct_3": 1.0}
    assert scores("DistinctN", rows * 2, ns=[2], per="ngrams") == {"distinct_2": 0.5}
    with pytest.raises(ConfigError, match="ns"):
        scores("DistinctN", [], ns=[0])


def test_intra_distinct_n_counts_within_each_reply():
    rows = [(["x"], {"text": text}) for text in ("No, no no!", "I know", "", "yes")]
    # Words: 1 of 3, 2 of 2, none, 1 of 1; pairs: 1 of 2 and 1 of 1.
    found = scores("IntraDistinctN", rows)
    assert found == {"intra_distinct_1": pytest.approx(7 / 12), "intra_distinct_2": 1.5 / 4}
    assert scores("IntraDistinctN", rows[:1], ns=[3]) == {"intra_distinct_3": 1.0}
    assert higher_is_better("task/intra_distinct_2")
    with pytest.raises(ConfigError, match="ns"):
        scores("IntraDistinctN", [], ns=[])


def auc_slowly(rows):
    """Compare every pair of an example of the class and another one, for each class."""
    areas = []
    for number, name in enumerate("abc"):
        inside = [p[number] for label, p in rows if label == name]
        outside = [p[number] for label, p in rows if label != name]
        pairs = list(itertools.product(inside, outside))
        if pairs:
            areas.append(sum((p > q) + (p == q) / 2 for p, q in pairs) / len(pairs))
    return sum(areas) / len(areas) if areas else 0.0


def auc(rows, classes="abc"):
    replied = ([[label], {"classes": classes, "probabilities": p}] for label, p in rows)
    return scores("AUC", replied)["auc"]


probabilities = st.tuples(*[st.sampled_from([0.0, 0.2, 0.3, 0.5, 1.0])] * 3)


@given(st.lists(st.tuples(st.sampled_from("abcd"), probabilities), min_size=1, max_size=30))
def test_auc_equals_comparing_all_pairs(rows):
    assert auc(rows) == pytest.approx(auc_slowly(rows), abs=1e-12)


def test_auc_equals_scikit_learn():
    sklearn_metrics = pytest.importorskip("sklearn.metrics")
    draw = random.Random(0)
    rows = []
    for _ in range(300):
        weights = [draw.randint(1, 6) for _ in "abc"]
        label = draw.choices("abc", weights)[0]
        rows.append((label, [weight / sum(weights) for weight in weights]))
    labels, P = zip(*rows)
    expected = sklearn_metrics.roc_auc_score(labels, P, multi_class="ovr", average="macro")
    assert auc(rows) == pytest.approx(expected, abs=1e-12)
    two = [(label, p) for label, p in rows if label != "c"]
    expected = sklearn_metrics.roc_auc_score(
        [label == "b" for label, _ in two], [p[1] - p[0] for _, p in two]
    )
    shares = [(label, (p[0] - p[1], p[1] - p[0])) for label, p in two]
    assert auc(shares, "ab") == pytest.approx(expected, abs=1e-12)


def test_auc_is_not_reported_of_rankers():
    rows = [(["a"], {"text": "a", "text_candidates": ["a", "b"], "candidate_scores": [9.0, 1.0]})]
    assert scores("AUC", rows) == {}
