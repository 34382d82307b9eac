"""The lengths that agents report for their input are the lengths that their models read."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from thinc.api import Model, chain, with_padded

from tests.agents import colours
from tests.agents.colours import bag, make, rectangles, teacher_of
from tests.processes import slow
from thincdialog.agents.lone_replies import LoneReplies
from thincdialog.api import Message
from thincdialog.examples import Batch, MemoryStore
from thincdialog.layers.pool import pool
from thincdialog.layers.token_embed import TokenEmbed
from thincdialog.messages import PARTNER, SELF, MessageBatch

TRAIN = [
    {"text": "a b c d e f", "labels": ["one two three four"], "features": np.ones(2, dtype="f")},
    {"text": "g h", "labels": ["five"], "features": np.zeros(2, dtype="f")},
]


def recorder(seen):
    """A layer that records its input: a list of token ids for each row."""

    def forward(model, X, is_train):
        rows = np.split(np.array(X.dataXd), np.cumsum(X.lengths)[:-1])
        seen.append([row[:, 0].tolist() for row in rows])
        return X, lambda dX: dX

    return Model("recorder", forward)


def build(kind, contexts=bag, labels=bag, *, reads="text", **options):
    """Build an agent. Return it with the contexts and the labels that its model reads."""
    seen = [], []

    def make_model():
        if reads == "features":
            return make("layers", "Linear.v1")
        if kind == "Classifier":
            return make("models", "Classifier", chain(recorder(seen[0]), contexts()))
        encoders = chain(recorder(seen[0]), contexts()), chain(recorder(seen[1]), labels())
        return make("models", "BiEncoder", *encoders, share="nothing")

    if kind == "Classifier":
        options.pop("max_label", None)
    rows = [{k: v for k, v in row.items() if k in (reads, "labels")} for row in TRAIN]
    agent, _ = colours.build(kind, make_model, rows, **options)
    for each in seen:
        each.clear()
    return agent, *seen


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
        # Identical labels of a batch are read once, so each label here is different.
        message = Message(context=context, text=text, id=str(number))
        message[field] = [" ".join([label, *["one"] * number])]
        if limits is not None:
            message["max_tokens"] = limits
        messages.append(message)
    return messages


@given(st.sampled_from(["Ranker", "Classifier"]), ROWS, OPTIONS, st.booleans())
def test_lengths_are_what_the_model_reads(kind, rows, options, is_observed):
    agent, contexts, labels = build(kind, **options)
    for field in ("labels", "eval_labels")[kind == "Classifier" :]:
        messages = messages_of(rows, field)
        if is_observed:
            messages = [agent.clone().observe(message) for message in messages]
        agent.reset_metrics()
        before = agent.report()
        lengths = agent.batch_lengths(messages)
        assert agent.report() == before and lengths.counts.dtype == np.int64
        agent.batch_act(messages)
        assert lengths.counts[:, 0].tolist() == [len(row) for row in contexts[-1]]
        for (*_, limits), row in zip(rows, contexts[-1]):
            assert limits is None or len(row) <= limits[0]
        if kind == "Classifier":
            assert lengths.padded == (False,) and lengths.counts.shape == (len(rows), 1)
        elif field == "eval_labels":
            assert not lengths.counts[:, 1].any()
        else:
            assert lengths.counts[:, 1].tolist() == [len(row) for row in labels[-1]]
            assert agent.report()["tokens"].value() == lengths.counts.sum()


@pytest.mark.parametrize("world", ["BatchWorld", "DynamicBatchWorld"])
@pytest.mark.parametrize("oversize", ["alone", slow("truncate")])
@pytest.mark.parametrize("kind", ["Words", slow("Padded")])
def test_ranker_allocates_no_more_cells_than_the_budget(kind, oversize, world):
    shapes = []

    def forward(model, X, is_train):
        shapes.append(X.data.shape[:2])
        return X, lambda dX: dX

    def encoder():
        return chain(TokenEmbed(4), with_padded(Model("shapes", forward)), pool("max"))

    agent, *_ = build("Ranker", encoder, encoder, max_context=0, max_label=0)
    agent.lone_replies = LoneReplies()  # The agent was built on less data.
    n_words = np.minimum(np.random.default_rng(0).lognormal(1.5, 0.9, (300, 2)).astype(int) + 1, 70)
    texts = [("a " * n, "b " * m) for n, m in n_words.tolist()]
    # Single turns are handed over in whole batches; conversations wait in a live buffer.
    for episodes in ([[pair] for pair in texts], [texts[n : n + 3] for n in range(0, 300, 3)]):
        batcher = make("batchers", kind, 40, buffer=8, oversize=oversize)
        run = make("worlds", world, batcher)(teacher_of(episodes), agent)
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


def test_classifier_of_features_has_rows_of_length_one():
    agent, _, _ = build("Classifier", reads="features")
    messages = [Message(features=np.ones(2, dtype="f"), id=name) for name in "abc"]
    lengths = agent.batch_lengths(messages)
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
    agent.batch_act(list(MessageBatch(columns, 2)))
    assert [words(agent, row) for row in contexts[-1]] == ["e f", "g h"]
    assert [words(agent, row) for row in labels[-1]] == ["one two three", "five"]
    report = agent.report()
    assert report["truncated_contexts"].value() == report["truncated_labels"].value() == 1 / 2
    assert report["truncated_context_tokens"].value() == 4
    assert report["truncated_label_tokens"].value() == 1


@given(
    st.lists(st.tuples(TEXTS, st.none() | st.lists(TEXTS, max_size=2)), min_size=1, max_size=8),
    st.lists(st.lists(st.integers(0, 7), max_size=6), max_size=4),
    st.sampled_from([0, 2, 99]),
    st.booleans(),
    st.data(),
)
def test_ranker_lengths_of_rows_of_a_store_are_those_of_their_messages(
    examples, batches, max_label, is_held, data
):
    """The lengths hold after any earlier batches, with labels and without, in training and
    evaluation."""
    agent, *_ = build("Ranker", max_label=max_label)
    store = MemoryStore(is_held)
    for text, labels in examples:
        fields = {"text": text, "labels": labels}
        store.append([Message({k: value for k, value in fields.items() if value is not None})])
    for rows in batches:
        rows = np.array([row % len(examples) for row in rows], dtype=np.int64)
        limits = data.draw(st.none() | st.lists(LIMITS, min_size=len(rows), max_size=len(rows)))
        for training in (True, False):
            batch = Batch(store, rows, training)
            messages = list(batch)
            if limits is not None:
                for message, limit in zip(messages, limits):
                    message.update({} if limit is None else {"max_tokens": limit})
                batch.max_tokens = Batch.of(messages).max_tokens
            found = agent.batch_lengths(batch).counts
            assert found.tolist() == agent.batch_lengths(messages).counts.tolist()
            n_tokens = [len((m.get("labels") or [""])[0].split()) for m in messages]
            allowed = [m.get("max_tokens", (99, 99))[1] for m in messages]
            expected = [min(n, limit, max_label or 99) for n, limit in zip(n_tokens, allowed)]
            assert found[:, 1].tolist() == expected


@pytest.mark.parametrize("contexts", [bag, rectangles])
@pytest.mark.parametrize("labels", [bag, rectangles])
def test_ranker_pads_each_side_by_itself(contexts, labels):
    agent, _, _ = build("Ranker", contexts, labels)
    padded = (contexts is rectangles, labels is rectangles)
    rows = [Message(text=row["text"], labels=row["labels"]) for row in TRAIN]
    lengths = agent.batch_lengths(rows)
    assert lengths.padded == padded
    assert lengths.counts.tolist() == [[6, 4], [2, 1]]
    agent.batch_act(rows)
    n_cells = (12 if padded[0] else 8) + (8 if padded[1] else 5)
    assert agent.report()["padding_fraction"].value() == (n_cells - 13) / n_cells
    assert lengths.cells() == n_cells


def test_agent_measures_each_example_once(monkeypatch):
    agent, _, _ = build("Ranker")
    store = MemoryStore()
    for n in range(40):
        store.append([Message(text=f"a b c {n}", labels=[f"one {n % 5}"])])
    laid_out, held = [], agent.text._kept
    lay_out = held.lay_out
    monkeypatch.setattr(held, "lay_out", lambda turns: laid_out.extend(turns) or lay_out(turns))
    first = agent.batch_lengths(Batch(store, np.arange(40)))
    texts = [text for _, text in laid_out]
    assert sorted(texts) == sorted(
        {cell for n in range(40) for cell in (f"a b c {n}", f"one {n % 5}")}
    )
    again = agent.batch_lengths(Batch(store, np.arange(39, -1, -1)))
    assert again.counts.tolist() == first.counts[::-1].tolist() and len(laid_out) == len(texts)
