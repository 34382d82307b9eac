"""Families of encoders: the sizes in config.json, and the names and shapes of parameters."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Collection, Dict, Iterator, Optional, Tuple

from ..errors import ModelError

FAMILIES = ("bert", "distilbert", "roberta", "xlm-roberta")
# A table of vectors, one for each piece of text: the model_type of Model2Vec.
TABLE = "model2vec"
ACTIVATIONS = ("gelu", "relu")
WORDS = "embeddings.word_embeddings.weight"
_LARGEST = 1 << 20  # of a number in config.json
# BERT's names in config.json, and DistilBERT's.
_NUMBERS = {
    "n_pieces": ("vocab_size", "vocab_size"),
    "width": ("hidden_size", "dim"),
    "depth": ("num_hidden_layers", "n_layers"),
    "n_heads": ("num_attention_heads", "n_heads"),
    "hidden": ("intermediate_size", "hidden_dim"),
    "n_places": ("max_position_embeddings", "max_position_embeddings"),
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


@dataclass(frozen=True)
class Sizes:
    """What config.json says.

    n_pieces (int): Rows of the embedding table.
    n_places (int): Places told apart.
    first_place (int): Row of the first place in the table of places.
    activation (str): "gelu" or "relu".
    eps (float): What layer normalisation adds to the variance.
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
    """The sizes of an encoder.

    path (Path): Of config.json, for errors.
    config (Dict[str, Any]): Its contents.
    RAISES (ModelError): If the family, or a setting, is not supported.
    """
    family: Any = config.get("model_type")
    check_known(path, "model_type", family, (*FAMILIES, TABLE))
    is_distil = family == "distilbert"
    activation = config.get("activation" if is_distil else "hidden_act", "gelu")
    check_known(path, "activation", activation, ACTIVATIONS)
    positions = config.get("position_embedding_type", "absolute")
    check_known(path, "position_embedding_type", positions, ("absolute",))
    numbers: Dict[str, int] = {}
    for ours, names in _NUMBERS.items():
        value = config.get(names[is_distil])
        if type(value) is not int or not 1 <= value <= _LARGEST:
            text = f"{path}  {names[is_distil]} = {json.dumps(value)[:60]}, expected a whole number"
            raise ModelError(f"{text} from 1 to {_LARGEST:,}.")
        numbers[ours] = value
    # RoBERTa's first place is the one after padding's id.
    pad = config.get("pad_token_id", 1) if "roberta" in family else -1
    eps = config.get("layer_norm_eps", 1e-12)
    is_sound = type(pad) is int and -1 <= pad < numbers["n_places"] - 1
    if not (is_sound and isinstance(eps, float) and 0 < eps < 1):
        raise ModelError(f"{path}  pad_token_id or layer_norm_eps is out of range.")
    if numbers["width"] % numbers["n_heads"]:
        text = f"{path}  the width, {numbers['width']}, is no multiple of"
        raise ModelError(f"{text} {numbers['n_heads']} heads.")
    numbers["n_places"] -= pad + 1
    return Sizes(family, **numbers, first_place=pad + 1, activation=activation, eps=eps)


def check_known(path: Path, name: str, value: Any, known: Collection[str]) -> None:
    """See that a setting has a value that is supported.

    RAISES (ModelError): If not.
    """
    if value not in list(known):
        text = f"{path}  {name} = {json.dumps(value)[:60]}. Supported"
        raise ModelError(f"{text}: {', '.join(known)}.")


def shapes_of(sizes: Sizes) -> Iterator[Tuple[str, Tuple[int, ...]]]:
    """BERT's names of an encoder's parameters, and their shapes; -1 is any number."""
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


def name_in_file(name: str, family: str, names: Collection[str]) -> Optional[str]:
    """A parameter's name in a file, which may begin with that of the model; None if it is missing.

    name (str): BERT's.
    names (Collection[str]): All in the file.
    """
    if family == "distilbert":
        name = name.replace("encoder.layer.", "transformer.layer.")
        for bert, distil, *_ in LAYER:
            name = name.replace(f".{bert}.", f".{distil}.")
    prefix = "roberta" if "roberta" in family else family
    known = _TABLES if family == TABLE else (name, f"{prefix}.{name}")
    return next((each for each in known if each in names), None)
