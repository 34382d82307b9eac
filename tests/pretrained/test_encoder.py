"""Vectors of a published encoder equal its formula, and those of the libraries that trained it."""

import gc
import json

import numpy as np
import pytest
from thinc.api import Ragged

from tests.layers.check_layer import check_gradients
from tests.ops.array_backends import EACH_OPS
from tests.pretrained.tiny_families import DEPTH, FAMILIES, WIDTH, formula, write_encoder
from thincdialog.data.special_tokens import N_SPECIAL
from thincdialog.errors import ModelError
from thincdialog.models.parameters import FlatParameters
from thincdialog.models.vocabulary_size import set_vocabulary
from thincdialog.ops.choice import using_ops
from thincdialog.pretrained.encoder import (
    PretrainedEncoder,
    PretrainedTokens,
    encode,
    text_encoder,
)
from thincdialog.pretrained.folder import read_folder
from thincdialog.pretrained.tokenizer import PretrainedTokenizer

TEXTS = ["hello world", "book a table for two", "how", "", "what are you", "hello world"]


def tokens_of(folder, texts=TEXTS):
    ids, lengths = PretrainedTokenizer(str(folder)).encode_many(texts)
    return Ragged(np.stack([ids, np.zeros_like(ids)], axis=1), lengths.astype("i"))


def split(X):
    ends = X.lengths.cumsum()
    return [X.dataXd[end - n : end, 0] - N_SPECIAL for n, end in zip(X.lengths, ends)]


@EACH_OPS
@pytest.mark.parametrize("family", FAMILIES)
def test_encoder_gives_each_token_the_vector_of_the_formula(ops, family, tmp_path):
    tensors = write_encoder(tmp_path, family)
    with using_ops(ops):
        model = PretrainedTokens(str(tmp_path), dropout=0.3)
        X = tokens_of(tmp_path)
        model.initialize(X=X)
    wanted = np.concatenate([formula(family, tensors, ids) for ids in split(X)])
    np.testing.assert_allclose(ops.to_numpy(model.predict(X).dataXd), wanted, atol=1e-5)


@pytest.mark.parametrize("family", FAMILIES)
def test_encoder_reads_parameters_prefixed_with_the_model_name(family, tmp_path):
    prefix = f"{'roberta' if 'roberta' in family else family}."
    write_encoder(tmp_path / "plain", family)
    write_encoder(tmp_path / "prefixed", family, prefix=prefix)
    plain, prefixed = (
        read_folder(str(tmp_path / name)).tensors() for name in ("plain", "prefixed")
    )
    assert all((plain[name] == prefixed[name]).all() for name in plain) and prefixed


def test_encoder_reads_layer_norms_by_the_names_in_early_berts(tmp_path):
    from safetensors.numpy import save_file

    tensors = write_encoder(tmp_path, "bert")
    plain, new = read_folder(str(tmp_path)).tensors(), ("Norm.weight", "Norm.bias")
    old = {
        name.replace(new[0], "Norm.gamma").replace(new[1], "Norm.beta"): array
        for name, array in tensors.items()
    }
    assert len(old.keys() - tensors.keys()) == 2 * (1 + 2 * DEPTH)
    save_file(old, tmp_path / "model.safetensors")
    found = read_folder(str(tmp_path)).tensors()
    assert all((plain[name] == found[name]).all() for name in plain)


def add_modules(folder, mode, *, with_dense=False, with_norm=True):
    """Add the files of sentence-transformers to a folder. Return the dense layer's W and b."""
    from safetensors.numpy import save_file

    modules = ["Transformer", "Pooling"] + ["Dense"] * with_dense + ["Normalize"] * with_norm
    places = {"Transformer": "", "Pooling": "1_Pooling", "Dense": "2_Dense", "Normalize": "3"}
    listed = [{"type": f"sentence_transformers.models.{m}", "path": places[m]} for m in modules]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(mode))
    rng = np.random.default_rng(5)
    W, b = rng.normal(size=(3, WIDTH)).astype("f"), rng.normal(size=3).astype("f")
    if with_dense:
        (folder / "2_Dense").mkdir()
        save_file({"linear.weight": W, "linear.bias": b}, folder / "2_Dense" / "model.safetensors")
        config = {"out_features": 3, "activation_function": "torch.nn.modules.activation.Tanh"}
        (folder / "2_Dense" / "config.json").write_text(json.dumps(config))
    return W, b


@EACH_OPS
@pytest.mark.parametrize(
    "mode, pooled",
    [
        ({"pooling_mode_cls_token": True}, lambda X: X[0]),
        ({"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}, lambda X: X.mean(0)),
        ({"pooling_mode": "max"}, lambda X: X.max(0)),
    ],
    ids=["cls", "mean", "max"],
)
@pytest.mark.parametrize("with_dense", [False, True])
def test_encoder_pools_as_the_folder_says(ops, mode, pooled, with_dense, tmp_path):
    tensors = write_encoder(tmp_path, "bert")
    W, b = add_modules(tmp_path, mode, with_dense=with_dense)
    X = tokens_of(tmp_path)
    wanted = np.stack([pooled(formula("bert", tensors, ids)) for ids in split(X)])
    if with_dense:
        wanted = np.tanh(wanted @ W.T + b)
    wanted /= np.linalg.norm(wanted, axis=1, keepdims=True)
    with using_ops(ops):
        model = text_encoder(read_folder(str(tmp_path)))
        model.initialize(X=X)
    np.testing.assert_allclose(ops.to_numpy(model.predict(X)), wanted, atol=1e-5)
    # Texts are encoded in batches by length, and their vectors are put back in order.
    found = encode(model, X.dataXd[:, 0], X.lengths)
    np.testing.assert_allclose(found, wanted, atol=1e-5)


@EACH_OPS
def test_encoder_s_gradients_are_those_of_finite_differences(ops, tmp_path):
    write_encoder(tmp_path, "bert")
    add_modules(tmp_path, {"pooling_mode": "cls"}, with_dense=True)
    with using_ops(ops):
        model = PretrainedEncoder(str(tmp_path), frozen=False, dropout=0.0)
        X = tokens_of(tmp_path, TEXTS[:2])
        model.initialize(X=X)
    check_gradients(model, X, ops, False)


def test_encoder_that_is_frozen_has_no_parameters(tmp_path):
    write_encoder(tmp_path / "encoder", "bert")
    folder = str(tmp_path / "encoder")
    frozen = PretrainedEncoder(folder, vectors=str(tmp_path / "vectors"))
    trained = PretrainedEncoder(folder, frozen=False)
    for model in (frozen, trained):
        model.initialize(X=tokens_of(folder))
    assert FlatParameters(frozen).n_parameters == 0
    assert FlatParameters(trained).n_parameters > 1000


def test_encoder_refuses_the_ids_of_another_tokenizer(tmp_path):
    write_encoder(tmp_path, "bert")
    model = PretrainedTokens(str(tmp_path))
    set_vocabulary(model, 99)
    with pytest.raises(ModelError, match="the tokenizer has 99 ids, but the encoder reads 22"):
        model.initialize()


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_encoder_is_equal_to_transformers(family, tmp_path):
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    write_encoder(tmp_path, family)
    theirs = transformers.AutoModel.from_pretrained(tmp_path).eval()
    X = tokens_of(tmp_path)
    model = PretrainedTokens(str(tmp_path))
    model.initialize(X=X)
    found = model.predict(X).dataXd
    with torch.inference_mode():
        given = [torch.from_numpy(ids[None].astype("i8")) for ids in split(X)]
        rows = [theirs(ids).last_hidden_state[0].numpy() for ids in given]
    np.testing.assert_allclose(found, np.concatenate(rows), atol=1e-5)
    gc.collect()
