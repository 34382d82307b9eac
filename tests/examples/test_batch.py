"""Batches: rows of a store, read as messages and in the way in which agents read them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.examples import Batch, MemoryStore
from thincdialog.examples.batch import NO_LIMIT, gathered
from thincdialog.messages import PARTNER, SELF, Message, column

LABELS = st.lists(st.sampled_from("xyz"), max_size=2)
TURNS = st.lists(st.tuples(st.sampled_from([PARTNER, SELF]), st.sampled_from("ab")), max_size=3)
ROWS = st.lists(
    st.fixed_dictionaries(
        {"text": st.sampled_from(["", "a", "b c"])},
        optional={"labels": LABELS, "context": TURNS, "mood": st.integers(), "turns": st.just(7)},
    ),
    min_size=1,
    max_size=6,
)
LIMITS = st.none() | st.tuples(st.integers(0, 9), st.integers(0, 9))


def store_of(rows, is_held=True):
    store = MemoryStore(is_held)
    for number, row in enumerate(rows):
        store.append([Message(row, id=str(number))])
    return store


@given(ROWS, st.data(), st.booleans())
def test_batch_is_a_sequence_of_its_messages(rows, data, training):
    places = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=8))
    batch = Batch(store_of(rows), np.array(places, dtype=np.int64), training)
    expected = []
    for place in places:
        message = {**rows[place], "id": str(place), "episode_done": True}
        if not training and "labels" in message:
            message["eval_labels"] = message.pop("labels")
        expected.append(message)
    assert len(batch) == len(expected) and list(batch) == expected == batch[:]
    assert [batch[at] for at in range(-len(places), 0)] == expected
    with pytest.raises(IndexError):
        batch[len(places)]
    for name in ("text", "labels", "eval_labels", "mood", "episode_done", "max_tokens", "other"):
        cells = [message.get(name) for message in expected]
        assert list(column(batch, name)) == cells
        assert name in batch.names() or cells.count(None) == len(cells)
    assert batch.ids() == [str(place) for place in places]


@given(ROWS, st.data())
def test_batch_of_messages_is_read_as_they_are(rows, data):
    limits = data.draw(st.lists(LIMITS, min_size=len(rows), max_size=len(rows)))
    messages = [Message({k: v for k, v in row.items() if k != "turns"}) for row in rows]
    for message, limit in zip(messages, limits):
        message.update({} if limit is None else {"max_tokens": limit})
    batch = Batch.of(messages)
    assert Batch.of(batch) is batch
    assert [Message(row) for row in batch] == [{**row, "episode_done": True} for row in messages]
    if any(limit is not None for limit in limits):
        assert batch.max_tokens.tolist() == [list(each or (NO_LIMIT, NO_LIMIT)) for each in limits]
    else:
        assert batch.max_tokens is None
    places = [place for place, row in enumerate(rows) if row.get("labels")]
    labelled = batch.labelled()
    assert labelled.first_labels() == [rows[place]["labels"][0] for place in places]
    assert list(labelled) == [batch[place] for place in places]
    if places and not any(limits[place] for place in places):
        assert labelled.max_tokens is None


@given(ROWS, st.sampled_from([-1, 1, 2, 3]))
def test_batch_turns_are_context_and_text(rows, size):
    """A field of the data that is called "turns" changes nothing: only messages that an agent
    observed bring their own turns."""
    batch = Batch(store_of(rows), np.arange(len(rows)))
    whole = [[*row.get("context", ()), (PARTNER, row["text"])] for row in rows]
    assert batch.turns(size) == [turns[-size:] if size > 0 else turns for turns in whole]
    heard = [Message(text="x", turns=[(SELF, "y")]), Message(text="z")]
    assert Batch.of(heard).turns(size) == [[(SELF, "y")], [(PARTNER, "z")]]


@given(ROWS)
def test_batch_in_evaluation_has_no_labels_to_learn_from(rows):
    batch = Batch(store_of(rows), np.arange(len(rows)), training=False)
    assert not len(batch.labelled())
    assert batch.column("eval_labels") == [row.get("labels") for row in rows]


@given(st.lists(ROWS, min_size=1, max_size=3), st.randoms())
def test_batch_of_several_stores_is_gathered_in_any_order(parts, random):
    batches = [
        Batch(store_of(rows), np.arange(len(rows)), tasks=np.full(len(rows), number))
        for number, rows in enumerate(parts)
    ]
    places = list(range(sum(map(len, parts))))
    random.shuffle(places)
    joined = gathered(batches, np.array(places))
    every = [(message, number) for number, batch in enumerate(batches) for message in batch]
    assert list(joined) == [every[place][0] for place in places]
    assert joined.tasks.tolist() == [every[place][1] for place in places]
    assert len(gathered([])) == 0 and gathered(batches[:1]).store is batches[0].store
