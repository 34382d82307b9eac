"""Tiny encoders with random weights, one of each family, and their formula in NumPy."""

import json
from math import erf, sqrt

import numpy as np
import pytest

WIDTH, DEPTH, HEADS, HIDDEN, PLACES, EPS = 16, 2, 4, 32, 24, {"bert": 1e-12, "distilbert": 1e-12}
WORDS = "hello world how are you book a table for two".split()
SPECIAL = {
    "bert": ["[PAD]", "[CLS]", "[SEP]", "[UNK]"],
    "roberta": ["<s>", "<pad>", "</s>", "<unk>"],
}
SPECIAL["distilbert"], SPECIAL["xlm-roberta"] = SPECIAL["bert"], SPECIAL["roberta"]
FAMILIES = sorted(SPECIAL)
LINEARS = {
    "q": ("attention.self.query", "attention.q_lin"),
    "k": ("attention.self.key", "attention.k_lin"),
    "v": ("attention.self.value", "attention.v_lin"),
    "o": ("attention.output.dense", "attention.out_lin"),
    "1": ("intermediate.dense", "ffn.lin1"),
    "2": ("output.dense", "ffn.lin2"),
}
NORMS = {
    "a": ("attention.output.LayerNorm", "sa_layer_norm"),
    "b": ("output.LayerNorm", "output_layer_norm"),
}


def is_distil(family):
    return family == "distilbert"


def layer_of(family, i):
    return f"{'transformer' if is_distil(family) else 'encoder'}.layer.{i}."


def eps_of(family):
    return EPS.get(family, 1e-5)


def draw_tensors(family, n_pieces, seed=0):
    """Return weights under the names in files of the family."""
    rng, shapes = np.random.default_rng(seed), {}
    shapes["embeddings.word_embeddings.weight"] = (n_pieces, WIDTH)
    shapes["embeddings.position_embeddings.weight"] = (PLACES, WIDTH)
    if not is_distil(family):
        shapes["embeddings.token_type_embeddings.weight"] = (2 if family == "bert" else 1, WIDTH)
    sizes = {"1": (HIDDEN, WIDTH), "2": (WIDTH, HIDDEN)}
    named = {"embeddings.LayerNorm": (WIDTH,)}
    for i in range(DEPTH):
        layer = layer_of(family, i)
        for key, names in LINEARS.items():
            named[layer + names[is_distil(family)]] = sizes.get(key, (WIDTH, WIDTH))
        for names in NORMS.values():
            named[layer + names[is_distil(family)]] = (WIDTH,)
    for name, shape in named.items():
        shapes[f"{name}.weight"], shapes[f"{name}.bias"] = shape, shape[:1]
    return {
        name: rng.normal(scale=0.3, size=shape).astype("f") + np.float32("Norm.weight" in name)
        for name, shape in shapes.items()
    }


def config_of(family, n_pieces):
    names = "dim n_layers n_heads hidden_dim activation".split()
    if not is_distil(family):
        names = "hidden_size num_hidden_layers num_attention_heads intermediate_size hidden_act"
        names = names.split()
    config = dict(zip(names, (WIDTH, DEPTH, HEADS, HIDDEN, "gelu")))
    config.update(model_type=family, vocab_size=n_pieces, max_position_embeddings=PLACES)
    if "roberta" in family:
        config.update(pad_token_id=1, layer_norm_eps=1e-5, type_vocab_size=1)
    return config


def write_encoder(folder, family, prefix="", **changes):
    """Write the folder of an encoder.

    prefix (str): Prefix of the names of all parameters.
    changes (Any): Settings to change in config.json.
    RETURNS (dict): The tensors, by their names without the prefix.
    """
    pytest.importorskip("tokenizers")
    save_file = pytest.importorskip("safetensors.numpy").save_file
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    folder.mkdir(parents=True, exist_ok=True)
    special = SPECIAL[family]
    numbers = {piece: n for n, piece in enumerate([*special, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(numbers, unk_token=special[3]))
    tokenizer.add_special_tokens(special)
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    first, last = special["roberta" not in family], special[2]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        special_tokens=[(first, numbers[first]), (last, numbers[last])],
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    tensors = draw_tensors(family, len(numbers))
    save_file({prefix + name: tensors[name] for name in tensors}, folder / "model.safetensors")
    config = {**config_of(family, len(numbers)), **changes}
    (folder / "config.json").write_text(json.dumps(config))
    return tensors


def norm(X, G, b, eps):
    centred = X - X.mean(1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(1, keepdims=True) + eps) * G + b


def formula(family, tensors, ids):
    """Return a vector for each token of one text, computed in double precision.

    SOURCE: Devlin et al. 2019; Sanh et al. 2019; Liu et al. 2019
    """
    W = {name: value.astype("d") for name, value in tensors.items()}
    first = 2 if "roberta" in family else 0
    X = W["embeddings.word_embeddings.weight"][ids]
    X = X + W["embeddings.position_embeddings.weight"][first : first + len(ids)]
    if not is_distil(family):
        X = X + W["embeddings.token_type_embeddings.weight"][0]

    def normed(X, name):
        return norm(X, W[f"{name}.weight"], W[f"{name}.bias"], eps_of(family))

    X = normed(X, "embeddings.LayerNorm")
    for i in range(DEPTH):

        def named(names, i=i):
            return layer_of(family, i) + names[is_distil(family)]

        def linear(X, key, named=named):
            name = named(LINEARS[key])
            return X @ W[f"{name}.weight"].T + W[f"{name}.bias"]

        q, k, v = (linear(X, key) for key in "qkv")
        heads = []
        for c in range(0, WIDTH, WIDTH // HEADS):
            cells = slice(c, c + WIDTH // HEADS)
            scores = np.exp(q[:, cells] @ k[:, cells].T / sqrt(WIDTH // HEADS))
            heads.append(scores / scores.sum(1, keepdims=True) @ v[:, cells])
        X = normed(X + linear(np.hstack(heads), "o"), named(NORMS["a"]))
        hidden = linear(X, "1")
        hidden = hidden * 0.5 * (1 + np.vectorize(erf)(hidden / sqrt(2)))
        X = normed(X + linear(hidden, "2"), named(NORMS["b"]))
    return X
