"""The folder of a published encoder, in Hugging Face's and sentence-transformers' layout."""

import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any, Dict, Iterable, Iterator, List, NamedTuple, Optional, Tuple

import numpy as np

from ..errors import MissingPackageError, ModelError
from ..files.json_text import parse_json
from ..files.plain_file import open_plain, read_plain

FAMILIES = ("bert", "distilbert", "roberta", "xlm-roberta")
# A table of vectors, one for each piece of text: the model_type of Model2Vec.
TABLE = "model2vec"
ACTIVATIONS = ("gelu", "relu")
POOLINGS = {"cls": "first", "mean": "mean", "max": "max"}
WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
FILES = (CONFIG, WEIGHTS, TOKENIZER, "modules.json", "sentence_bert_config.json",
         "config_sentence_transformers.json")  # fmt: skip
_DENSE_ACTIVATIONS = {"Identity": False, "Tanh": True}
_LARGEST = 1 << 20  # of a number in config.json
_MAX_JSON, _MAX_TOKENIZER = 1 << 22, 1 << 28
_TYPES = {"F16": 2, "F32": 4, "F64": 8}
# Names of a table: Model2Vec's; sentence-transformers' and WordLlama's.
_TABLES = ("embeddings", "embedding.weight")
_TOKENS_OF_TABLE = 512
_WORDS = "embeddings.word_embeddings.weight"
# DistilBERT's names of what the others call as on the left.
_DISTILBERT = {
    "encoder.layer.": "transformer.layer.",
    "attention.self.query": "attention.q_lin",
    "attention.self.key": "attention.k_lin",
    "attention.self.value": "attention.v_lin",
    "attention.output.dense": "attention.out_lin",
    "attention.output.LayerNorm": "sa_layer_norm",
    "intermediate.dense": "ffn.lin1",
    "output.dense": "ffn.lin2",
    "output.LayerNorm": "output_layer_norm",
}

Shapes = Dict[str, Tuple[int, ...]]
Named = Iterable[Tuple[str, Tuple[int, ...]]]
Tensors = Dict[str, np.ndarray]


class Dense(NamedTuple):
    """A linear layer over pooled vectors.

    W (np.ndarray): Shape (nO, nI), float32.
    b (np.ndarray): Shape (nO,), float32.
    has_tanh (bool): Whether a tanh follows.
    """

    W: np.ndarray
    b: np.ndarray
    has_tanh: bool


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
    depth: int
    n_heads: int
    hidden: int
    n_places: int
    first_place: int
    activation: str
    eps: float


@dataclass(frozen=True)
class PretrainedFolder:
    """An encoder of BERT's kind: what its files say, checked; weights are read when asked for.

    path (Path): The folder.
    sizes (Sizes): From config.json.
    pooling (str): "first" (the [CLS] token), "mean" or "max".
    dense (List[Dense]): Linear layers over the pooled vector.
    normalise (bool): Whether vectors are scaled to length 1.
    max_tokens (int): Longest text, special tokens counted.
    prompt (str): Text that is put before each text unless another one is given.
    weights (str): Name of the file of the weights.
    pieces (str): Name of the file of the tokenizer.
    """

    path: Path
    sizes: Sizes
    pooling: str = "mean"
    dense: Tuple[Dense, ...] = ()
    normalise: bool = False
    max_tokens: int = 512
    prompt: str = ""
    weights: str = WEIGHTS
    pieces: str = TOKENIZER

    @property
    def width(self) -> int:
        """Width of a text's vector."""
        return len(self.dense[-1].b) if self.dense else self.sizes.width

    @cached_property
    def tokenizer(self) -> str:
        """The text of the tokenizer's file.

        RAISES (ModelError): If it cannot be read.
        """
        return _read(self.path / self.pieces, _MAX_TOKENIZER).decode("utf-8", "replace")

    @cached_property
    def checksum(self) -> str:
        """Tells encoders apart that give other ids or vectors: SHA-256 of settings, tokenizer
        and weights."""
        settings = {**asdict(self), "path": "", "dense": [each.has_tanh for each in self.dense]}
        found = sha256(json.dumps(settings, sort_keys=True).encode())
        found.update(self.tokenizer.encode("utf-8"))
        for each in self.dense:
            found.update(each.W.tobytes() + each.b.tobytes())
        with _reading(self.path / self.weights) as path, open_plain(path) as file:
            while block := file.read(1 << 20):
                found.update(block)
        return found.hexdigest()

    def tensors(self) -> Tensors:
        """The weights, float32, under BERT's names ("encoder.layer.0.output.dense.bias").

        RAISES (ModelError): If some are missing, have another shape or are not finite.
        """
        return dict(_tensors(self.path / self.weights, self._shapes(), self.sizes.family))

    def check(self) -> None:
        """See that all weights are there, in their shapes, without reading them."""
        for _ in _slices(self.path / self.weights, self._shapes(), self.sizes.family):
            pass

    def _shapes(self) -> Iterator[Tuple[str, Tuple[int, ...]]]:
        sizes = self.sizes
        width, hidden = sizes.width, sizes.hidden
        yield _WORDS, (sizes.n_pieces, width)
        if sizes.family == TABLE:
            return
        n_places = sizes.first_place + sizes.n_places
        yield "embeddings.position_embeddings.weight", (n_places, width)
        if sizes.family != "distilbert":
            yield "embeddings.token_type_embeddings.weight", (-1, width)
        named: Shapes = {"embeddings.LayerNorm": (width,)}
        for i in range(sizes.depth):
            layer = f"encoder.layer.{i}"
            for each in ("self.query", "self.key", "self.value", "output.dense"):
                named[f"{layer}.attention.{each}"] = (width, width)
            named[f"{layer}.intermediate.dense"] = (hidden, width)
            named[f"{layer}.output.dense"] = (width, hidden)
            for each in ("attention.output.LayerNorm", "output.LayerNorm"):
                named[f"{layer}.{each}"] = (width,)
            for name, shape in named.items():
                yield f"{name}.weight", shape
                yield f"{name}.bias", shape[:1]
            named = {}


def read_folder(path: str) -> PretrainedFolder:
    """What the files of an encoder's folder say; its weights are looked at, but not read.

    path (str): The folder: config.json, tokenizer.json and model.safetensors, and
        sentence-transformers' modules.json where there is one.
    RAISES (ModelError): If something is missing, damaged, or not supported.
    RAISES (MissingPackageError): If safetensors is not installed.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise ModelError(
            f"{folder}  is no folder. Download an encoder first, for instance with: hf download "
            "sentence-transformers/all-MiniLM-L6-v2 --local-dir minilm"
        )
    table = _read_table(folder)
    if table is not None:
        return table
    modules = _read_modules(folder)
    place = folder / modules.pop(0)[1]
    for name in (CONFIG, WEIGHTS, TOKENIZER):
        if not (place / name).exists():
            others = sorted(each.name for each in place.glob("pytorch_model*.bin"))
            text = f"{place}  has no {name}"
            if name == WEIGHTS and others:
                text += f", only {others[0]}, which is a pickle and may run code when it is read"
            raise ModelError(f"{text}. Needed: {CONFIG}, {TOKENIZER} and {WEIGHTS}.")
    config = _read_json(place / CONFIG)
    sizes = _read_sizes(place / CONFIG, config)
    pooling, normalise = "mean", False
    dense: List[Dense] = []
    for kind, name in modules:
        if kind == "Pooling":
            pooling = _read_pooling(folder / name / CONFIG)
        elif kind == "Dense":
            before = len(dense[-1].b) if dense else sizes.width
            dense.append(_read_dense(folder / name, before))
        else:
            normalise = True
    limits = _read_json(place / "sentence_bert_config.json", optional=True)
    max_tokens = limits.get("max_seq_length") or sizes.n_places
    texts = _read_json(folder / "config_sentence_transformers.json", optional=True)
    prompts, chosen = texts.get("prompts") or {}, texts.get("default_prompt_name")
    prompt = prompts.get(chosen, "") if chosen and isinstance(prompts, dict) else ""
    if type(max_tokens) is not int or max_tokens < 1 or not isinstance(prompt, str):
        raise ModelError(f"{folder}  max_seq_length is no whole number, or a prompt no text.")
    max_tokens = min(max_tokens, sizes.n_places)
    found = PretrainedFolder(place, sizes, pooling, tuple(dense), normalise, max_tokens, prompt)
    found.check()
    return found


def _read_table(folder: Path) -> Optional[PretrainedFolder]:
    """A table in the layout of Model2Vec or WordLlama; None if it is something else.

    SOURCE: https://github.com/MinishLab/model2vec, https://github.com/dleemiller/WordLlama
    """
    weights, pieces = WEIGHTS, TOKENIZER
    config = _read_json(folder / CONFIG, optional=True)
    if not config:
        tables = [*folder.glob("*_*.safetensors"), *folder.glob("weights/*_*.safetensors")]
        if not tables:
            return None
        tokenizers = [*folder.glob("*tokenizer*.json"), *folder.glob("tokenizers/*.json")]
        if len(tables) > 1 or len(tokenizers) != 1:
            text = f"has {len(tables)} tables (*_*.safetensors) and {len(tokenizers)} tokenizers"
            raise ModelError(f"{folder}  {text} (*tokenizer*.json). Keep one of each.")
        weights, pieces = (str(each[0].relative_to(folder)) for each in (tables, tokenizers))
    elif config.get("model_type") != TABLE:
        return None
    elif config.get("vocabulary_quantization"):
        text = "vocabulary_quantization is set, which is not supported"
        raise ModelError(f"{folder / CONFIG}  {text}: save the table without it.")
    ((_, part),) = _slices(folder / weights, [(_WORDS, (-1, -1))], TABLE)
    n_pieces, width = part.get_shape()
    sizes = Sizes(TABLE, n_pieces, width, 0, 1, 0, _TOKENS_OF_TABLE, 0, "gelu", 0.0)
    return PretrainedFolder(
        folder,
        sizes,
        normalise=config.get("normalize") is True,
        max_tokens=_TOKENS_OF_TABLE,
        weights=weights,
        pieces=pieces,
    )


def _read_modules(folder: Path) -> List[Tuple[str, str]]:
    """Kind and folder of each of sentence-transformers' modules."""
    path = folder / "modules.json"
    if not path.exists():
        return [("Transformer", "")]
    kinds = ("Transformer", "Pooling", "Dense", "Normalize")
    try:
        modules = [(each["type"].rpartition(".")[2], str(each["path"])) for each in _load(path)]
        if any(PurePath(name).is_absolute() or ".." in PurePath(name).parts for _, name in modules):
            raise ValueError
    except (TypeError, LookupError, AttributeError, ValueError):
        text = "is no list of modules, each with a type and a path in this folder"
        raise ModelError(f"{path}  {text}.") from None
    found = [kind for kind, _ in modules]
    n_dense = found.count("Dense")
    expected = ["Transformer", "Pooling", *["Dense"] * n_dense]
    if found not in (expected, [*expected, "Normalize"], expected[:1]):
        raise ModelError(
            f"{path}  has the modules {', '.join(found)[:200]}. Supported, in this order: "
            f"{', '.join(kinds)}."
        )
    return modules


def encoder_files(folder: Path) -> List[PurePath]:
    """The files that an encoder is read from, by their names in its folder."""
    table = _read_table(folder)
    if table is not None:
        found = dict.fromkeys(map(PurePath, (CONFIG, table.weights, table.pieces)))
    else:
        places = [PurePath(), *(PurePath(name) for _, name in _read_modules(folder))]
        found = dict.fromkeys(place / name for place in places for name in FILES)
    return [name for name in found if (folder / name).is_file()]


def _read_sizes(path: Path, config: Dict[str, Any]) -> Sizes:
    family = config.get("model_type")
    if family not in FAMILIES:
        text = f"{path}  model_type = {json.dumps(family)[:60]}. Supported"
        raise ModelError(f"{text}: {', '.join((*FAMILIES, TABLE))}.")
    is_distil = family == "distilbert"

    def number(name: str, distil_name: str = "") -> int:
        key = distil_name if is_distil and distil_name else name
        value = config.get(key)
        if type(value) is not int or not 1 <= value <= _LARGEST:
            text = f"{path}  {key} = {json.dumps(value)[:60]}, expected a whole number"
            raise ModelError(f"{text} from 1 to {_LARGEST:,}.")
        return value

    activation = config.get("activation" if is_distil else "hidden_act", "gelu")
    positions = config.get("position_embedding_type", "absolute")
    for name, value, known in (
        ("activation", activation, ACTIVATIONS),
        ("position_embedding_type", positions, ("absolute",)),
    ):
        if value not in known:
            text = f"{path}  {name} = {json.dumps(value)[:60]}. Supported"
            raise ModelError(f"{text}: {', '.join(known)}.")
    # RoBERTa's first place is the one after padding's id.
    pad = config.get("pad_token_id", 1) if "roberta" in family else -1
    eps = 1e-12 if is_distil else config.get("layer_norm_eps", 1e-12)
    n_places = number("max_position_embeddings")
    is_sound = type(pad) is int and -1 <= pad < n_places - 1
    if not (is_sound and isinstance(eps, float) and 0 < eps < 1):
        raise ModelError(f"{path}  pad_token_id or layer_norm_eps is out of range.")
    first = pad + 1
    width, n_heads = number("hidden_size", "dim"), number("num_attention_heads", "n_heads")
    if width % n_heads:
        raise ModelError(f"{path}  the width, {width}, is no multiple of {n_heads} heads.")
    return Sizes(
        family=family,
        n_pieces=number("vocab_size"),
        width=width,
        depth=number("num_hidden_layers", "n_layers"),
        n_heads=n_heads,
        hidden=number("intermediate_size", "hidden_dim"),
        n_places=n_places - first,
        first_place=first,
        activation=activation,
        eps=eps,
    )


def _read_pooling(path: Path) -> str:
    config = _read_json(path)
    old = "pooling_mode_"
    chosen = [key[len(old) :] for key, on in config.items() if key.startswith(old) and on]
    mode = config.get("pooling_mode", "+".join(chosen).replace("_tokens", "").replace("_token", ""))
    if not isinstance(mode, str) or mode not in POOLINGS:
        text = f"{path}  asks for the pooling {json.dumps(mode)[:60]}"
        raise ModelError(f"{text}. Supported: {', '.join(POOLINGS)}.")
    return POOLINGS[mode]


def _read_dense(folder: Path, width: int) -> Dense:
    config = _read_json(folder / CONFIG)
    name = str(config.get("activation_function", "Tanh")).rpartition(".")[2]
    n_out = config.get("out_features")
    if name not in _DENSE_ACTIVATIONS or type(n_out) is not int or config.get("bias") is False:
        text = f"{folder / CONFIG}  expected out_features, a bias, and one of the activations"
        raise ModelError(f"{text} {', '.join(_DENSE_ACTIVATIONS)}.")
    shapes: Shapes = {"linear.weight": (n_out, width), "linear.bias": (n_out,)}
    found = dict(_tensors(folder / WEIGHTS, shapes.items(), ""))
    return Dense(found["linear.weight"], found["linear.bias"], _DENSE_ACTIVATIONS[name])


def _named(name: str, family: str, names: Any) -> Optional[str]:
    """A parameter's name in the file, which may begin with that of the model."""
    if family == TABLE:
        return next((each for each in _TABLES if each in names), None)
    if family == "distilbert":
        for ours, theirs in _DISTILBERT.items():
            name = name.replace(ours, theirs)
    prefix = "roberta" if "roberta" in family else family
    return next((each for each in (name, f"{prefix}.{name}") if each in names), None)


def _opened(path: Path) -> Any:
    try:
        from safetensors import SafetensorError, safe_open
    except ImportError:
        raise MissingPackageError("safetensors", "pretrained", "A published encoder") from None
    with _reading(path) as real:
        open_plain(real).close()
    try:
        return safe_open(real, framework="numpy")
    except (SafetensorError, OSError, ValueError) as error:
        raise ModelError(f"{path}  is damaged ({_brief(error)}). Download it again.") from None


def _slices(path: Path, shapes: Named, family: str) -> Iterator[Tuple[str, Any]]:
    with _opened(path) as file:
        names = set(file.keys())
        for name, shape in shapes:
            key = _named(name, family, names)
            if key is None:
                raise ModelError(f"{path}  has no parameter {name}, which config.json asks for.")
            part = file.get_slice(key)
            found = tuple(part.get_shape())
            if len(found) != len(shape) or any(n not in (m, -1) for n, m in zip(shape, found)):
                raise ModelError(
                    f"{path}  {key} has the shape {found}, but by config.json it is {shape}."
                )
            if part.get_dtype() not in _TYPES:
                text = f"{path}  {key} is of the type {part.get_dtype()}"
                raise ModelError(f"{text}. Supported: {', '.join(_TYPES)}.")
            yield name, part


def _tensors(path: Path, shapes: Named, family: str) -> Iterator[Tuple[str, np.ndarray]]:
    for name, part in _slices(path, shapes, family):
        array = part[:].astype(np.float32)
        if not np.isfinite(array).all():
            raise ModelError(f"{path}  {name} holds NaN or infinity. Download it again.")
        yield name, array


def _read_json(path: Path, *, optional: bool = False) -> Dict[str, Any]:
    if optional and not path.exists():
        return {}
    found = _load(path)
    if not isinstance(found, dict):
        raise ModelError(f"{path}  is no JSON object.")
    return found


def _load(path: Path) -> Any:
    try:
        return parse_json(_read(path, _MAX_JSON))
    except ValueError as error:
        raise ModelError(f"{path}  is no JSON ({_brief(error)}). Download it again.") from None


@contextmanager
def _reading(path: Path) -> Iterator[Path]:
    """A file's real path, because a hub's folder holds links; what it fails with is one line."""
    try:
        yield Path(os.path.realpath(path))
    except OSError as error:
        raise ModelError(f"{path}  cannot be read: {error.strerror}.") from None


def _read(path: Path, most: int) -> bytes:
    with _reading(path) as real:
        return read_plain(real, most)


def _brief(error: BaseException) -> str:
    return " ".join(str(error)[:200].split())
