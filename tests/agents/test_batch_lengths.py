"""What agents say of the lengths of their input is what their models then read."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thinc.api import Model, chain, noop, with_padded
from thincdialog.columns import PickedColumn
from thincdialog.teachers.store import EpisodeStore

from thincdialog.api import IterableTeacher, Message, MessageBatch, registry
from thincdialog.layers.pool import pool
from thincdialog.layers.token_embed import TokenEmbed
from thincdialog.messages import PARTNER, SELF
from thincdialog.ops.choice import get_dialog_ops, using_ops

TRAIN = [
    {"text": "a b c d e f", "labels": ["one two three four"], "features": np.ones(2, dtype="f")},
    {"text": "g h", "labels": ["five"], "features": np.zeros(2, dtype="f")},
]


def recorder(seen):
    """A layer that keeps what goes through it: a list of token ids for each row."""

    def forward(model, X, is_train):
        rows = np.split(np.array(X.dataXd), np.cumsum(X.lengths)[:-1])
        seen.append([row[:, 0].tolist() for row in rows])
        return X, lambda dX: dX

    return Model("recorder", forward)


def bag():
    return registry.models.get("thincdialog.BagEncoder.v1")(width=4)


def rectangles():
    return chain(TokenEmbed(4), with_padded(noop()), pool("max"))


def build(kind, contexts=bag, labels=bag, *, reads="text", **options):
    """An agent, what its model reads of contexts, and what of labels."""
    seen_contexts, seen_labels = [], []
    with using_ops(get_dialog_ops(-1)):
        if reads == "features":
            model = registry.layers.get("Linear.v1")()
        elif kind == "Ranker":
            encoders = [chain(recorder(seen_contexts), contexts())]
            encoders.append(chain(recorder(seen_labels), labels()))
            model = registry.models.get("thincdialog.BiEncoder.v1")(*encoders, share="nothing")
        else:
            encoder = chain(recorder(seen_contexts), contexts())
            model = registry.models.get("thincdialog.Classifier.v1")(encoder)
            options.pop("max_label", None)
        agent = registry.agents.get(f"thincdialog.{kind}.v1")(model, **options)
        rows = [{k: v for k, v in row.items() if k in (reads, "labels")} for row in TRAIN]
        train = IterableTeacher({"train": rows}).for_split("train", training=True)
        agent.initialize(train, tokenizer=registry.tokenizers.get("thincdialog.Words.v1")(), seed=0)
    agent.reset_metrics()
    seen_contexts.clear()
    seen_labels.clear()
    return agent, seen_contexts, seen_labels


def words(agent, row):
    return " ".join(agent.tokenizer.decode([token]) for token in row)


TEXTS = st.lists(st.sampled_from("abcdgz"), max_size=7).map(" ".join)
TURNS = st.lists(st.tuples(st.sampled_from([PARTNER, SELF]), TEXTS), max_size=4)
LIMITS = st.none() | st.tuples(st.sampled_from([0, 1, 3, 9]), st.sampled_from([0, 1, 3, 9]))
ROWS = st.lists(st.tuples(TURNS, TEXTS, TEXTS, LIMITS), min_size=1, max_size=5)
OPTIONS = st.fixed_dictionaries(
    {
        "history_size": st.sampled_from([-1, 1, 2, 3]),
        "max_context": st.sampled_from([0, 1, 4, 99]),
        "max_label": st.sampled_from([0, 2, 99]),
        "delimiter": st.booleans(),
        "speaker_tokens": st.booleans(),
    }
)


def messages_of(rows, field):
    messages = []
    for number, (context, text, label, limits) in enumerate(rows):
        # Labels of a batch that are alike are read once, so each is another here.
        message = Message(context=context, text=text, id=str(number))
        message[field] = [" ".join([label, *["one"] * number])]
        if limits is not None:
            message["max_tokens"] = limits
        messages.append(message)
    return messages


@given(ROWS, OPTIONS, st.booleans())
@settings(max_examples=40, deadline=None)
def test_ranker_lengths_are_what_its_model_reads(rows, options, as_list):
    agent, contexts, labels = build("Ranker", **options)
    for field in ("labels", "eval_labels"):
        observations = agent.batch_observe(messages_of(rows, field))
        observations = list(observations) if as_list else observations
        agent.reset_metrics()
        before = agent.report()
        lengths = agent.batch_lengths(observations)
        assert agent.report() == before
        assert lengths.counts.dtype == np.int64
        agent.batch_act(observations)
        assert lengths.counts[:, 0].tolist() == [len(row) for row in contexts[-1]]
        for (*_, limits), row in zip(rows, contexts[-1]):
            assert limits is None or len(row) <= limits[0]
        if field == "eval_labels":
            assert not lengths.counts[:, 1].any()
        else:
            assert lengths.counts[:, 1].tolist() == [len(row) for row in labels[-1]]
            assert agent.report()["tokens"].value() == lengths.counts.sum()


@pytest.mark.parametrize("world", ["BatchWorld", "DynamicBatchWorld"])
@pytest.mark.parametrize("oversize", ["alone", "truncate"])
@pytest.mark.parametrize("kind", ["Words", "Padded"])
def test_ranker_allocates_no_more_cells_than_the_budget(kind, oversize, world):
    shapes = []

    def forward(model, X, is_train):
        shapes.append(X.data.shape[:2])
        return X, lambda dX: dX

    def encoder():
        return chain(TokenEmbed(4), with_padded(Model("shapes", forward)), pool("max"))

    agent, *_ = build("Ranker", encoder, encoder, max_context=0, max_label=0)
    n_words = np.minimum(np.random.default_rng(0).lognormal(1.5, 0.9, (300, 2)).astype(int) + 1, 70)
    texts = [("a " * n, "b " * m) for n, m in n_words.tolist()]
    # Single turns go over in columns; conversations wait in a live buffer.
    for episodes in ([[pair] for pair in texts], [texts[n : n + 3] for n in range(0, 300, 3)]):
        batcher = registry.batchers.get(f"thincdialog.{kind}.v1")(40, buffer=8, oversize=oversize)
        teacher = IterableTeacher({"train": episodes}).for_split("train", training=True)
        run = registry.worlds.get(f"thincdialog.{world}.v1")(batcher)(teacher, agent)
        n_alone = n_rows = 0
        while not run.epoch_done():
            shapes.clear()
            run.parley()
            n_rows += len(run.acts[0])
            if sum(map(np.prod, shapes)) > 40:
                assert oversize == "alone" and len(run.acts[0]) == 1
                n_alone += 1
        assert n_rows == 300
        assert (n_alone > 0) == (oversize == "alone")


@given(ROWS, OPTIONS)
@settings(max_examples=20, deadline=None)
def test_classifier_lengths_are_what_its_model_reads(rows, options):
    agent, contexts, _ = build("Classifier", **options)
    observations = agent.batch_observe(messages_of(rows, "eval_labels"))
    before = agent.report()
    lengths = agent.batch_lengths(observations)
    assert agent.report() == before
    agent.batch_act(observations)
    assert lengths.counts.tolist() == [[len(row)] for row in contexts[-1]]
    assert lengths.padded == (False,)


def test_classifier_of_features_has_rows_of_length_one():
    agent, _, _ = build("Classifier", reads="features")
    messages = [Message(features=np.ones(2, dtype="f"), id=name) for name in "abc"]
    lengths = agent.batch_lengths(agent.batch_observe(messages))
    assert lengths.counts.tolist() == [[1], [1], [1]] and lengths.padded == (False,)


@pytest.mark.parametrize("candidates", ["batch", "inline", "fixed"])
def test_ranker_reads_no_more_than_max_tokens(candidates):
    agent, contexts, labels = build("Ranker", candidates=candidates)
    both = ["one two three four", "five"]
    columns = {
        "text": ["a b c d e f", "g h"],
        "labels": [[text] for text in both],
        "label_candidates": [both, both],
        "max_tokens": [(2, 3), None],
        "id": ["x", "y"],
    }
    observations = agent.batch_observe(MessageBatch(columns, 2))
    assert agent.batch_lengths(observations).counts.tolist() == [[2, 3], [2, 1]]
    agent.batch_act(observations)
    assert [words(agent, row) for row in contexts[-1]] == ["e f", "g h"]
    assert [words(agent, row) for row in labels[-1]] == ["one two three", "five"]
    report = agent.report()
    assert report["truncated_contexts"].value() == report["truncated_labels"].value() == 1 / 2
    assert report["truncated_context_tokens"].value() == 4
    assert report["truncated_label_tokens"].value() == 1


def test_ranker_label_of_several_rows_has_their_lowest_limit():
    agent, _, labels = build("Ranker")
    rows = [
        Message(text="a", labels=["one two three"], max_tokens=limits, id=str(limits))
        for limits in ((9, 9), (9, 1), None)
    ]
    agent.batch_act(agent.batch_observe(rows))
    assert [words(agent, row) for row in labels[-1]] == ["one"]


def test_agent_own_limits_hold_beside_max_tokens():
    agent, contexts, labels = build("Ranker", max_context=3, max_label=2)
    rows = [
        Message(text="a b c d", labels=["one two three"], max_tokens=(9, 9), id="1"),
        Message(text="a b c d e", labels=["one two"], max_tokens=(1, 0), id="2"),
    ]
    observations = agent.batch_observe(rows)
    assert agent.batch_lengths(observations).counts.tolist() == [[3, 2], [1, 0]]
    agent.batch_act(observations)
    assert [words(agent, row) for row in contexts[-1]] == ["b c d", "e"]
    assert [words(agent, row) for row in labels[-1]] == ["one two", ""]


def test_ranker_lengths_of_rows_with_and_without_labels():
    agent, _, _ = build("Ranker")
    rows = [Message(text="a b"), Message(text="a b c", labels=["one two"], max_tokens=(2, 1))]
    lengths = agent.batch_lengths(agent.batch_observe(rows))
    assert lengths.counts.tolist() == [[2, 0], [2, 1]]
    assert agent.batch_lengths(agent.batch_observe([])).counts.shape == (0, 2)


@given(
    st.lists(st.tuples(TEXTS, st.none() | st.lists(TEXTS, max_size=2)), min_size=1, max_size=8),
    st.lists(st.lists(st.integers(0, 7), min_size=1, max_size=6), min_size=1, max_size=4),
    st.sampled_from([0, 2, 99]),
    st.data(),
)
@settings(max_examples=40, deadline=None)
def test_ranker_lengths_of_labels_are_the_same_from_columns_that_know_their_rows(
    examples, batches, max_label, data
):
    """Whatever was shown before, and whoever puts another column in its place, or changes
    cells of his own."""
    agent, *_ = build("Ranker", max_label=max_label)
    store = EpisodeStore()
    for text, labels in examples:
        store.append(
            [Message({"text": text} if labels is None else {"text": text, "labels": labels})]
        )

    def slow(columns, n_rows):
        rows = [{name: columns[name][row] for name in columns} for row in range(n_rows)]
        messages = [Message({k: v for k, v in row.items() if v is not None}) for row in rows]
        lists = [message.pop("labels", None) for message in messages]
        lengths = agent.batch_lengths(agent.batch_observe(messages)).counts
        for row, (labels, message) in enumerate(zip(lists, messages)):
            limit = message.get("max_tokens", (99, 99))[1]
            n_tokens = len(labels[0].split()) if labels else 0
            lengths[row, 1] = min(n_tokens, limit, max_label or 99)
        return lengths.tolist()

    for batch in batches:
        rows = np.array([row % len(examples) for row in batch], dtype=np.int64)
        picked = {
            name: PickedColumn(values, rows, store, name) for name, values in store.fields("labels")
        }
        others = data.draw(st.lists(TEXTS.map(lambda text: [text]), min_size=6, max_size=6))
        limits = data.draw(st.lists(LIMITS, min_size=6, max_size=6))
        for more in (
            {},
            {"max_tokens": limits[: len(rows)]},
            {"labels": others[: len(rows)]},
            {},
        ):
            columns = {**picked, **more}
            observations = agent.batch_observe(MessageBatch(columns, len(rows)))
            found = agent.batch_lengths(observations).counts
            assert found.tolist() == slow(columns, len(rows))
            if "labels" in more:
                for labels in others:
                    labels[0] += " a"
                changed = agent.batch_lengths(observations).counts
                assert changed.tolist() == slow(columns, len(rows))


def test_ranker_looks_at_labels_of_the_data_once(monkeypatch):
    agent, *_ = build("Ranker")
    teacher = IterableTeacher({"train": [("a", "one two"), ("b", "five")]})
    shown = teacher.for_split("train", training=True)
    shown.set_batches(registry.batchers.get("thincdialog.Fixed.v1")(2))
    looked_at = []
    numbers_of = agent.text._label_numbers
    monkeypatch.setattr(
        agent.text, "_label_numbers", lambda texts: looked_at.extend(texts) or numbers_of(texts)
    )
    for epoch in range(3):
        shown.start_epoch(epoch, 0)
        observations = agent.batch_observe(shown.batch_act())
        lengths = agent.batch_lengths(observations).counts[:, 1]
        agent.train_batch(observations)
        assert sorted(lengths.tolist()) == [1, 2]
        shown.batch_observe([Message()] * 2)
    assert sorted(looked_at) == ["five", "one two"]


@pytest.mark.parametrize("contexts", [bag, rectangles])
@pytest.mark.parametrize("labels", [bag, rectangles])
def test_ranker_pads_each_side_by_itself(contexts, labels):
    agent, _, _ = build("Ranker", contexts, labels)
    padded = (contexts is rectangles, labels is rectangles)
    rows = [Message(text=row["text"], labels=row["labels"], id=row["text"]) for row in TRAIN]
    observations = agent.batch_observe(rows)
    lengths = agent.batch_lengths(observations)
    assert lengths.padded == padded
    assert lengths.counts.tolist() == [[6, 4], [2, 1]]
    agent.batch_act(observations)
    n_cells = (12 if padded[0] else 8) + (8 if padded[1] else 5)
    assert agent.report()["padding_fraction"].value() == (n_cells - 13) / n_cells
    assert lengths.cells() == n_cells


def test_agent_measures_fast():
    agent, _, _ = build("Ranker")
    rows = [Message(text=f"a b c {n}", labels=[f"one {n % 50}"]) for n in range(4000)]
    columns = {name: [row[name] for row in rows] for name in ("text", "labels")}
    observations = agent.batch_observe(MessageBatch(columns, len(rows)))
    agent.batch_lengths(observations)
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        agent.batch_lengths(observations)
        seconds.append(time.perf_counter() - started)
    assert min(seconds) / len(rows) < 5e-6, "about 0.5 microseconds on an idle machine"
