"""Describe the families of encoders that are supported: the sizes in config.json, and the names and
shapes of parameters."""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Collection, Dict, Iterator, Sequence, Tuple

from ..errors import ModelError

FAMILIES = ("bert", "distilbert", "roberta", "xlm-roberta")
# A table of vectors, one for each piece of text: the model_type of Model2Vec.
TABLE = "model2vec"
WORDS = "embeddings.word_embeddings.weight"
_LARGEST = 1 << 20  # Largest number allowed in config.json.
# Names of the sizes in config.json: BERT's, and DistilBERT's if it is another.
_NUMBERS = {
    "n_pieces": ("vocab_size",),
    "width": ("hidden_size", "dim"),
    "depth": ("num_hidden_layers", "n_layers"),
    "n_heads": ("num_attention_heads", "n_heads"),
    "hidden": ("intermediate_size", "hidden_dim"),
    "n_places": ("max_position_embeddings",),
}
# Parameters of a layer, in the order of our layers: BERT's name, DistilBERT's, and the shape.
LAYER = (
    ("attention.self.query", "attention.q_lin", "width", "width"),
    ("attention.self.key", "attention.k_lin", "width", "width"),
    ("attention.self.value", "attention.v_lin", "width", "width"),
    ("attention.output.dense", "attention.out_lin", "width", "width"),
    ("attention.output.LayerNorm", "sa_layer_norm", "width"),
    ("intermediate.dense", "ffn.lin1", "hidden", "width"),
    ("output.dense", "ffn.lin2", "width", "hidden"),
    ("output.LayerNorm", "output_layer_norm", "width"),
)
# Names of a table: Model2Vec's; sentence-transformers' and WordLlama's.
_TABLES = ("embeddings", "embedding.weight")
# BERT's names of other parts, with their names in DistilBERT and in the earliest BERT files.
_OTHERS = (
    ("encoder.layer.", "transformer.layer."),
    ("LayerNorm.weight", "LayerNorm.gamma"),
    ("LayerNorm.bias", "LayerNorm.beta"),
)


@dataclass(frozen=True)
class Sizes:
    """Hold the sizes in config.json.

    family (str): The `model_type`: one of ``FAMILIES``, or ``TABLE``.
    n_pieces (int): Number of rows of the embedding table.
    width (int): Width of a token's vector.
    depth (int): Number of layers.
    n_heads (int): Number of attention heads of each layer.
    hidden (int): Width of the hidden layer in each feed-forward network.
    n_places (int): Longest text, in tokens: the number of positions.
    first_place (int): Row of the first position in the table of positions.
    activation (str): "gelu" or "relu".
    eps (float): Constant that layer normalisation adds to the variance.
    """

    family: str
    n_pieces: int
    width: int
    depth: int = 0
    n_heads: int = 1
    hidden: int = 0
    n_places: int = 512
    first_place: int = 0
    activation: str = "gelu"
    eps: float = 0.0


def read_sizes(path: Path, config: Dict[str, Any]) -> Sizes:
    """Read the sizes of an encoder.

    path (Path): Path of config.json, for errors.
    config (Dict[str, Any]): Its contents.
    RAISES (ModelError): If the family, or a setting, is not supported.
    """
    family = str(config.get("model_type"))
    check_known(path, "model_type", family, (*FAMILIES, TABLE))
    activation = config.get("hidden_act", config.get("activation", "gelu"))
    check_known(path, "activation", activation, ("gelu", "relu"))
    positions = config.get("position_embedding_type", "absolute")
    check_known(path, "position_embedding_type", positions, ("absolute",))
    numbers = {ours: read_number(path, config, names) for ours, names in _NUMBERS.items()}
    if numbers["width"] % numbers["n_heads"]:
        text = f"{path}  the width, {numbers['width']}, is not a multiple of"
        raise ModelError(f"{text} {numbers['n_heads']} heads.")
    # RoBERTa's first position is the row after the id of the padding token.
    is_roberta = "roberta" in family
    first_place = 1 + read_number(path, config, ["pad_token_id"], 1) if is_roberta else 0
    numbers["n_places"] -= first_place
    eps = read_number(path, config, ["layer_norm_eps"], 1e-12)
    return Sizes(family, **numbers, first_place=first_place, activation=activation, eps=eps)


def read_number(path: Path, config: Dict[str, Any], names: Sequence[str], default: Any = 0) -> Any:
    """Read a number above 0 of the same type as ``default``.

    path (Path): Path of config.json, for errors.
    config (Dict[str, Any]): Contents of the file.
    names (Sequence[str]): Names that the setting has in different families.
    default (Any): The number if the setting is missing or null; 0 if it is needed.
    RAISES (ModelError): If the value is not such a number.
    """
    name = next((name for name in names if config.get(name) is not None), names[0])
    value = default if config.get(name) is None else config[name]
    if type(value) is not type(default) or not 0 < value <= _LARGEST:
        kind = "a whole number" if isinstance(default, int) else "a number"
        text = f"{path}  {name} = {json.dumps(config.get(name))[:60]}, expected"
        raise ModelError(f"{text} {kind} above 0, {_LARGEST:,} at most.")
    return value


def check_known(path: Path, name: str, value: Any, known: Collection[Any]) -> None:
    """Check that a setting has a supported value.

    RAISES (ModelError): If the value is not in ``known``.
    """
    if value not in list(known):
        text = f"{path}  {name} = {json.dumps(value)[:60]}. Supported"
        raise ModelError(f"{text}: {', '.join(map(str, known))}.")


def shapes_of(sizes: Sizes) -> Iterator[Tuple[str, Tuple[int, ...]]]:
    """Yield BERT's name and the shape of each parameter of an encoder; -1 means any size."""
    yield WORDS, (sizes.n_pieces, sizes.width)
    if sizes.family == TABLE:
        return
    n_places = sizes.first_place + sizes.n_places
    yield "embeddings.position_embeddings.weight", (n_places, sizes.width)
    if sizes.family != "distilbert":
        yield "embeddings.token_type_embeddings.weight", (-1, sizes.width)
    for kind in ("weight", "bias"):
        yield f"embeddings.LayerNorm.{kind}", (sizes.width,)
    for i in range(sizes.depth):
        for name, _, *shape in LAYER:
            found = tuple(getattr(sizes, each) for each in shape)
            yield f"encoder.layer.{i}.{name}.weight", found
            yield f"encoder.layer.{i}.{name}.bias", found[:1]


def name_of_bert(name: str) -> str:
    """Return BERT's name of a parameter. Files may use other names: those of DistilBERT or of a
    table, names with the model's name before them, or those of the first BERTs (gamma, beta)."""
    if name in _TABLES:
        return WORDS
    name = re.sub(r"^(distilbert|bert|roberta)\.", "", name)
    for bert, other, *_ in (*LAYER, *_OTHERS):
        name = name.replace(other, bert)
    return name
