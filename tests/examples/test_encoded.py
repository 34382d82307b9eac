"""Stored tokens: an encoder gives the same results for them as for the texts."""

import random
from importlib.util import find_spec

import numpy as np
import pytest
from hypothesis import given
from hypothesis import settings as quick
from hypothesis import strategies as st

from thincdialog.data import TextEncoder
from thincdialog.data.tokenizers import WordTokenizer
from thincdialog.examples import Batch, MemoryStore
from thincdialog.examples.encoded import Encoded, side_by_side
from thincdialog.examples.joined_store import JoinedStore
from thincdialog.examples.store import Rows
from thincdialog.messages import PARTNER, SELF, Message

TEXTS = ["yes", "no , thanks", "may I have\na tea", "", "coffee please", "that is all then"]


class ReadyStore(Rows):
    """A store with tokens that another encoder made from its texts, which must not be read any
    more."""

    is_held = True

    def __init__(self, store, encoder):
        columns = {name: list(store.all_cells(name)) for name in store.names}
        super().__init__(columns, store.n_examples)
        batch = Batch(store, np.arange(store.n_examples))
        self._ready = encoder._look_up(batch, batch)
        self.encoder_keys = [encoder.key]

    def encoded(self, key, rows):
        numbers, labels = self._ready.conversations[rows], self._ready.labels[rows]
        return self._ready._replace(conversations=numbers, labels=labels)

    def cells(self, name, rows):
        assert name not in ("text", "context")
        return super().cells(name, rows)


@st.composite
def stores(draw):
    store = MemoryStore()
    text = st.sampled_from(TEXTS)
    context = st.lists(st.tuples(st.sampled_from([PARTNER, SELF]), text), max_size=3)
    for number in range(draw(st.integers(1, 6))):
        cells = {"id": str(number), "text": draw(text), "labels": [draw(text)]}
        store.append([Message(cells, context=draw(context))])
    return store


def make_encoder(**settings):
    tokenizer = WordTokenizer()
    tokenizer.build(TEXTS)
    return TextEncoder(tokenizer, **settings)


def arrays(found):
    flat = []
    for each in found:
        flat.extend(arrays(each) if isinstance(each, tuple) else [np.asarray(each).tolist()])
    return flat


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"history_size": 2, "speaker_tokens": True, "max_context": 5, "max_label": 2},
        {"segments": "line", "delimiter": False},
    ],
)
@quick(max_examples=25)
@given(st.lists(stores(), min_size=1, max_size=3), st.data())
def test_stored_tokens_give_the_same_results_as_texts(settings, parts, data):
    encoder, other = make_encoder(**settings), make_encoder(**settings)
    assert encoder.key == other.key
    held, ready = JoinedStore(parts), JoinedStore([ReadyStore(part, other) for part in parts])
    rows = np.array(data.draw(st.lists(st.integers(0, held.n_examples - 1), max_size=9)), dtype=int)
    batches = Batch(held, rows), Batch(ready, rows)
    for ask in (encoder.context_lengths, encoder.label_lengths):
        assert ask(batches[0]).tolist() == ask(batches[1]).tolist()
    for ask in (encoder.contexts, encoder.pairs):
        assert arrays(ask(batches[0])) == arrays(ask(batches[1]))
    if find_spec("numba"):
        for texts in [], TEXTS[2:], ["unseen words", TEXTS[1], TEXTS[0], TEXTS[1]]:
            packed = [arrays(encoder.pack(batch, texts, n_segments=2)) for batch in batches]
            assert packed[0] == packed[1]


@pytest.mark.parametrize("history_size, speaker_tokens", [(-1, False), (2, True)])
@pytest.mark.parametrize("cuts", [[(0, 9)], [(4, 9)], [(0, 9), (2, 6), (1, 1), (5, 9)]])
def test_tokens_of_pieces_give_the_same_results_as_texts(cuts, history_size, speaker_tokens):
    settings = {"history_size": history_size, "speaker_tokens": speaker_tokens}
    encoder, other = make_encoder(**settings), make_encoder(**settings)
    plain, ready = MemoryStore(is_held=False), MemoryStore(is_held=False)
    rng = random.Random(0)
    for first, last in cuts:
        part, tokenized = MemoryStore(is_held=False), MemoryStore(is_held=False)
        for number in range(9):
            context = [(rng.randrange(2), rng.choice(TEXTS)) for _ in range(rng.randrange(4))]
            cells = {"id": str(number), "context": context, "labels": [rng.choice(TEXTS)]}
            cells.update({"text": rng.choice(TEXTS)} if rng.random() < 0.8 else {})
            for store in part, tokenized:
                store.append([Message(cells)])
        tokenized.tokenize(encoder.encoding)
        plain.extend(part, np.arange(first, last))
        ready.extend(tokenized, np.arange(first, last))
    assert list(ready.encoder_keys) == [encoder.key]
    batches = [Batch(store, np.arange(store.n_examples)[::-1]) for store in (plain, ready)]
    for ask in ("context_lengths", "label_lengths", "contexts", "pairs"):
        wanted, found = getattr(other, ask)(batches[0]), getattr(encoder, ask)(batches[1])
        assert arrays([wanted]) == arrays([found])


def test_key_depends_only_on_settings_that_change_the_tokens():
    same = [{}, {"max_context": 3}, {"max_label": 3}, {"delimiter": False}]
    assert len({make_encoder(**settings).key for settings in same}) == 1
    others = [{"history_size": 2}, {"speaker_tokens": True}, {"segments": "line"}]
    keys = {make_encoder(**settings).key for settings in [{}, *others]}
    for tokenizer in (WordTokenizer(lower=False), WordTokenizer()):
        tokenizer.build(TEXTS[:4])
        keys.add(TextEncoder(tokenizer).key)
    assert len(keys) == 6 and None not in keys


def test_side_by_side_widens_ids_of_small_types():
    narrow = Encoded(*map(np.array, ([0, 1], [0], [[0], [2], [1]])), np.array([7, 2], "u2"),
                     np.array([0]), np.array([0]))  # fmt: skip
    joined = side_by_side([narrow, narrow])
    assert joined.tokens.tolist() == [7, 2, 7, 2] and joined.tokens.dtype == np.int64
