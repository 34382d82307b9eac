"""Episodes in memory: they come back unchanged, in whatever pieces they were added, and each text
is held once."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.examples import MemoryStore, memory_store
from thincdialog.messages import PARTNER, SELF, Message

TEXTS = st.sampled_from(["", "a", "b c", "\ud800", "日本"])
TURNS = st.lists(st.tuples(st.sampled_from([PARTNER, SELF]), TEXTS), max_size=3)
# Includes values that only resemble a context.
CONTEXTS = TURNS | st.just([[PARTNER, "a"]]) | st.just([(2, "a")]) | st.just([([], "a")])
CELLS = {
    "text": TEXTS | st.integers(0, 2),
    "labels": st.lists(TEXTS, max_size=3) | st.lists(TEXTS, max_size=1).map(tuple) | st.none(),
    "context": CONTEXTS,
    "other": st.lists(st.floats(0, 1), max_size=2) | st.booleans(),
}
MESSAGES = st.fixed_dictionaries({}, optional=CELLS)
EPISODES = st.lists(st.lists(MESSAGES, min_size=1, max_size=3), max_size=9)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch):
    monkeypatch.setattr(memory_store, "CHUNK", 4)


def shown(store):
    return [repr(store.message(row)) for row in range(store.n_examples)]


def episodes_of(episodes):
    """Make messages whose fields are in the same order as those of the store."""
    names = list(dict.fromkeys(name for e in episodes for row in e for name in row))
    return [
        [Message((n, row[n]) for n in names if row.get(n) is not None) for row in episode]
        for episode in episodes
    ]


@given(st.lists(EPISODES, max_size=3), st.data())
def test_memory_store_returns_episodes_that_were_added_in_any_pieces(parts, data):
    """Episodes are appended one by one, or copied from other stores. Some of these came from
    another process, or had copied the episodes themselves. Rows are read in between."""
    parts = [episodes_of(part) for part in parts]
    store, expected = MemoryStore(), []
    for part in parts:
        if data.draw(st.booleans()):
            for episode in part:
                store.append(episode)
        else:
            other = MemoryStore()
            for episode in part:
                other.append(episode)
            if data.draw(st.booleans()):
                other = pickle.loads(pickle.dumps(other))
            first = data.draw(st.integers(0, len(part)))
            last = data.draw(st.integers(first, len(part)))
            part = part[first:last]
            if data.draw(st.booleans()):
                between = MemoryStore()
                between.extend(other, np.arange(first, last))
                other, first, last = between, 0, len(part)
            store.extend(other, np.arange(first, last))
        expected += part
        if data.draw(st.booleans()):
            assert store.n_examples == len(shown(store))
    rows = [row for episode in expected for row in episode]
    found = [store.message(row) for row in range(store.n_examples)]
    assert [repr(sorted(each.items())) for each in found] == [
        repr(sorted(row.items())) for row in rows
    ]
    assert np.diff(store.starts).tolist() == list(map(len, expected))
    for name in CELLS:
        assert repr([*store.all_cells(name)]) == repr([row.get(name) for row in rows])
    firsts = [(row.get("labels") or [None])[0] for row in rows]
    ids, texts = store.label_ids.tolist(), store.label_texts
    assert [texts[number] if number >= 0 else None for number in ids] == firsts
    assert list(texts) == list(dict.fromkeys(text for text in firsts if text is not None))


def test_memory_store_copies_only_the_given_rows():
    whole, part, again = MemoryStore(), MemoryStore(), MemoryStore()
    for number in range(9):
        said = [(SELF, f"said {number}"), (SELF, f"then {number}")]
        whole.append([Message(text=f"text {number}", labels=["a", f"b {number}"], context=said)])
    part.extend(whole, np.arange(3, 5))
    again.extend(part, np.arange(2))
    for store in (part, again):
        assert shown(store) == shown(whole)[3:5]
        assert store.n_strings == 2 * 4 + 1 and len(store.list_values) == 2 * 4


def test_memory_store_holds_equal_texts_once():
    store = MemoryStore()
    for text in map("".join, [["long ", "text"]] * 9):
        store.append([Message(text=text, labels=[text + ""], context=[(SELF, text)])])
    assert list(store.all_cells("text")) == ["long text"] * 9
    assert store.n_strings == 1 and store.cells("labels", np.array([8])) == [["long text"]]
    shared = ["a", "b"] * 9
    for _ in range(9):
        store.append([Message(text="", label_candidates=shared)])
    assert store.cells("label_candidates", np.array([12])) == [shared]
    # Nine turns, and the list once in each of three chunks.
    assert len(store.list_values) == 9 + 3 * len(shared)
