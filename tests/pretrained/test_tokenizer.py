"""The tokenizer of a published encoder fulfils the contract of all tokenizers."""

import json

import numpy as np
import pytest

from tests.pretrained.tiny_families import FAMILIES, WORDS, write_encoder
from thincdialog.data.special_tokens import N_SPECIAL
from thincdialog.data.tokenizers.key import tokenizer_key
from thincdialog.errors import ModelError
from thincdialog.pretrained.tokenizer import PretrainedTokenizer

LAST = 2


def build(folder, family="bert", **settings):
    write_encoder(folder, family)
    return PretrainedTokenizer(str(folder), **settings)


@pytest.mark.parametrize("family", FAMILIES)
def test_tokenizer_puts_special_tokens_around_each_text(family, tmp_path):
    tokenizer = build(tmp_path, family)
    first = 0 if "roberta" in family else 1
    words = [4 + WORDS.index(word) for word in ("hello", "you")]
    assert (tokenizer.encode("hello you") - N_SPECIAL).tolist() == [first, *words, LAST]
    assert (tokenizer.encode("") - N_SPECIAL).tolist() == [first, LAST]
    assert tokenizer.n_ids == N_SPECIAL + 4 + len(WORDS)
    assert tokenizer.pieces("hello")[1:-1] == ["hello"]
    assert tokenizer.decode(tokenizer.encode("hello you")) == "hello you"


def test_tokenizer_encodes_many_as_one_by_one(tmp_path):
    tokenizer = build(tmp_path)
    texts = ["hello", "", "what is \ud800 this?", "you " * 50, "hello world"]
    ids, lengths = tokenizer.encode_many(texts)
    assert ids.dtype == np.int32 and lengths.dtype == np.int64
    parts = np.split(ids, lengths.cumsum()[:-1])
    assert all((part == tokenizer.encode(text)).all() for part, text in zip(parts, texts))
    assert [len(each) for each in tokenizer.encode_many([])] == [0, 0]


def test_tokenizer_truncates_texts_to_the_limit_of_the_encoder(tmp_path):
    tokenizer = build(tmp_path)
    ids = tokenizer.encode("you " * 50) - N_SPECIAL
    assert len(ids) == 24 and ids[0] == 1 and ids[-1] == LAST
    (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": 5}))
    assert len(PretrainedTokenizer(str(tmp_path)).encode("you " * 50)) == 5
    for wrong in (-3, 5.5, "5"):
        (tmp_path / "sentence_bert_config.json").write_text(json.dumps({"max_seq_length": wrong}))
        with pytest.raises(ModelError, match="sentence_bert_config.json  max_seq_length = .*whole"):
            PretrainedTokenizer(str(tmp_path))


def test_tokenizer_puts_the_folder_s_prompt_or_another_one_before_each_text(tmp_path):
    write_encoder(tmp_path, "bert")
    prompts = {"prompts": {"query": "how ", "passage": "a "}, "default_prompt_name": "query"}
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(prompts))

    def pieces(**settings):
        return PretrainedTokenizer(str(tmp_path), **settings).pieces("you")[1:-1]

    assert pieces() == ["how", "you"]
    assert pieces(prompt="a ") == ["a", "you"]
    assert pieces(prompt="") == ["you"]
    prompts["prompts"]["query"] = 7
    (tmp_path / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    with pytest.raises(ModelError, match="transformers.json  .*the default prompt is not a string"):
        pieces()


def test_tokenizer_refuses_a_model_saved_with_another_one(tmp_path):
    tokenizer = build(tmp_path / "encoder", prompt="how ")
    tokenizer.to_disk(tmp_path / "saved")
    same, without = build(tmp_path / "same", prompt="how "), build(tmp_path / "same")
    same.from_disk(tmp_path / "saved")
    assert tokenizer_key(same) == tokenizer_key(tokenizer) != tokenizer_key(without)
    other = build(tmp_path / "other", "roberta")
    with pytest.raises(ModelError, match="other.tokenizer.json  is not the tokenizer that .*saved"):
        other.from_disk(tmp_path / "saved")


def test_tokenizer_of_another_encoder_is_one_line(tmp_path):
    write_encoder(tmp_path, "bert")
    tokenizer = json.loads((tmp_path / "tokenizer.json").read_text())
    tokenizer["model"]["vocab"]["much"] = 9999
    (tmp_path / "tokenizer.json").write_text(json.dumps(tokenizer))
    with pytest.raises(ModelError, match="they belong to different encoders"):
        PretrainedTokenizer(str(tmp_path))
