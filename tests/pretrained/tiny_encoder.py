"""Write a tiny BERT with random weights, whose tokens are single letters, in Hugging Face's
layout."""

import json

import numpy as np
import pytest

WIDTH = 8


def tiny_encoder(folder, seed=0):
    """Write an encoder. The weights depend on the seed."""
    pytest.importorskip("safetensors")
    pytest.importorskip("tokenizers")
    from safetensors.numpy import save_file
    from tokenizers import Tokenizer, models, pre_tokenizers, processors

    folder.mkdir(parents=True, exist_ok=True)
    letters = "abcdefghijklmnopqrstuvwxyz"
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    pieces = [*special, *letters, *(f"##{letter}" for letter in letters)]
    numbers = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {
        "model_type": "bert",
        "vocab_size": len(pieces),
        "hidden_size": WIDTH,
        "num_hidden_layers": 1,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 64,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
    }
    (folder / "config.json").write_text(json.dumps(config))
    rng, layer, weights = np.random.default_rng(seed), "encoder.layer.0", {}
    for name, n_rows in (("word", len(pieces)), ("position", 64), ("token_type", 2)):
        weights[f"embeddings.{name}_embeddings.weight"] = (n_rows, WIDTH)
    linears = {f"attention.self.{name}": (WIDTH, WIDTH) for name in ("query", "key", "value")}
    linears["attention.output.dense"] = (WIDTH, WIDTH)
    linears.update({"intermediate.dense": (16, WIDTH), "output.dense": (WIDTH, 16)})
    for name, shape in linears.items():
        weights[f"{layer}.{name}.weight"] = shape
        weights[f"{layer}.{name}.bias"] = shape[:1]
    drawn = {name: rng.normal(size=shape).astype("f") for name, shape in weights.items()}
    for name in ("embeddings", f"{layer}.attention.output", f"{layer}.output"):
        drawn[f"{name}.LayerNorm.weight"] = np.ones(WIDTH, "f")
        drawn[f"{name}.LayerNorm.bias"] = np.zeros(WIDTH, "f")
    save_file(drawn, folder / "model.safetensors")
    return folder
