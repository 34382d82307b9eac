"""Stores: the methods that a subclass must define are enough for all others."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.examples import MemoryStore, Store
from thincdialog.examples.joined_store import JoinedStore
from thincdialog.examples.store import NO_LABEL
from thincdialog.messages import Message

LABELS = st.lists(st.sampled_from(["x", "y y", "z"]), max_size=2)
FIELDS = st.fixed_dictionaries(
    {"id": st.sampled_from("abc")},
    optional={"text": st.sampled_from(["", "a b", "c"]), "labels": LABELS, "mood": st.integers()},
)
EPISODES = st.lists(st.lists(FIELDS, min_size=1, max_size=3), max_size=6)


class Plain(Store):
    """A store that defines only the required attributes and methods."""

    def __init__(self, episodes):
        self.rows = [row for episode in episodes for row in episode]
        self.starts = [0]
        for episode in episodes:
            self.starts.append(self.starts[-1] + len(episode))
        self.names = list(dict.fromkeys(name for row in self.rows for name in row))

    def cells(self, name, rows):
        return [self.rows[row].get(name) for row in rows.tolist()]


def in_memory(episodes):
    store = MemoryStore()
    for episode in episodes:
        store.append([Message(row) for row in episode])
    return store


def joined(episodes):
    """Join two stores. The second half of the episodes has its own store."""
    half = len(episodes) // 2
    parts = [in_memory(episodes[:half]), Plain(episodes[half:])]
    return JoinedStore([JoinedStore([part], prefix) for part, prefix in zip(parts, ("a/", "b/"))])


@pytest.mark.parametrize("make", [Plain, in_memory, joined])
@given(EPISODES, st.lists(st.integers(0, 99), max_size=9))
def test_store_returns_the_data_of_its_rows(make, episodes, some):
    store = make(episodes)
    rows = [dict(row) for episode in episodes for row in episode]
    if make is joined:
        n_first = sum(map(len, episodes[: len(episodes) // 2]))
        for number, row in enumerate(rows):
            row["id"] = f"{'a/' if number < n_first else 'b/'}{row['id']}"
    assert (store.n_episodes, store.n_examples) == (len(episodes), len(rows))
    assert store.is_single_turn is all(len(episode) == 1 for episode in episodes)
    assert set(store.names) == {name for row in rows for name in row}
    places = [place % len(rows) for place in some] if rows else []
    for name in (*store.names, "nothing"):
        assert list(store.all_cells(name)) == [row.get(name) for row in rows]
        found = store.cells(name, np.array(places, dtype=np.int64))
        assert found == [rows[place].get(name) for place in places]
    assert [store.message(place) for place in places] == [rows[place] for place in places]
    first = [(row.get("labels") or [None])[0] for row in rows]
    assert len(set(store.label_texts)) == len(store.label_texts)
    texts = [None if n == NO_LABEL else store.label_texts[n] for n in store.label_ids.tolist()]
    assert texts == first and set(store.label_texts) == set(first) - {None}
    assert list(np.diff(store.starts)) == list(map(len, episodes))
    sizes = {unit: np.diff(store.sizes(unit)) for unit in ("episodes", "examples", "words")}
    assert sizes["episodes"].tolist() == [1] * len(episodes)
    assert sizes["examples"].tolist() == list(map(len, episodes))
    said = [
        [" ".join([row.get("text", ""), *row.get("labels", ())]) for row in e] for e in episodes
    ]
    n_words = [[max(1, len(each.split())) for each in episode] for episode in said]
    assert store.n_words.tolist() == [n for episode in n_words for n in episode]
    assert sizes["words"].tolist() == list(map(sum, n_words))


@pytest.mark.parametrize("make", [Plain, in_memory, joined])
def test_store_counts_words_in_an_array(make):
    """The array takes eight bytes for each episode."""
    sizes = make([[{"id": "a", "text": "one two"}]] * 4).sizes("words")
    assert isinstance(sizes, np.ndarray) and sizes.tolist() == [0, 2, 4, 6, 8]
