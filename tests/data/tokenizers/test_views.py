"""A tokenizer of several tokenizers that read the same text."""

import numpy as np
import pytest

from thincdialog.data.special_tokens import N_SPECIAL
from thincdialog.data.tokenizers.byte_tokenizer import ByteTokenizer
from thincdialog.data.tokenizers.key import tokenizer_key
from thincdialog.data.tokenizers.views import ViewsTokenizer
from thincdialog.data.tokenizers.word_tokenizer import WordTokenizer

TEXTS = ["Hello there, how are you?", "", "I'm fine", "naïve café"]


def unbuilt(**settings):
    return ViewsTokenizer({"words": WordTokenizer(**settings), "bytes": ByteTokenizer()})


@pytest.fixture
def views():
    tokenizer = unbuilt()
    assert tokenizer.needs_texts
    tokenizer.build(iter(TEXTS))
    return tokenizer


def test_views_ids_are_those_of_each_view(views):
    for text in TEXTS:
        ids = views.encode(text)
        assert ids.dtype == np.int32 and len(ids) == len(views.pieces(text))
        assert (ids >= N_SPECIAL).all() and (ids < views.n_ids).all()
        for name, view in views.views.items():
            own = [id - views.ranges[name].start for id in ids.tolist() if id in views.ranges[name]]
            assert own == view.encode(text).tolist()
        assert text in views.decode(ids.tolist())


def test_views_encode_many_texts_as_one(views):
    ids, lengths = views.encode_many(TEXTS)
    parts = np.split(ids, lengths.cumsum()[:-1])
    assert [part.tolist() for part in parts] == [views.encode(text).tolist() for text in TEXTS]
    assert ids.dtype == np.int32 and lengths.dtype == np.int64
    assert [each.tolist() for each in views.encode_many([])] == [[], []]


def test_views_are_saved_and_loaded(views, tmp_path):
    views.to_disk(tmp_path)
    loaded = unbuilt()
    loaded.from_disk(tmp_path)
    assert loaded.ranges == views.ranges and tokenizer_key(loaded) == tokenizer_key(views)
    assert [loaded.encode(text).tolist() for text in TEXTS] == [
        views.encode(text).tolist() for text in TEXTS
    ]


def test_views_have_keys_that_depend_on_their_tokenizers(views):
    other = unbuilt(lower=False)
    other.build(TEXTS)
    assert tokenizer_key(other) != tokenizer_key(views) is not None


def test_views_need_one():
    with pytest.raises(ValueError, match="one tokenizer or more"):
        ViewsTokenizer({})
