"""The folder of a published encoder, in Hugging Face's and sentence-transformers' layout."""

import json
import os
from dataclasses import asdict, dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from ..errors import ModelError
from ..files.json_file import read_json
from ..files.json_text import parse_json
from ..files.plain_file import open_plain, read_plain
from .families import TABLE, WORDS, Sizes, check_known, read_sizes, shapes_of
from .weights import Tensors, read_tensors, reading, slices

POOLINGS = {"cls": "first", "mean": "mean", "max": "max"}
WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
FILES = (CONFIG, WEIGHTS, TOKENIZER, "modules.json", "sentence_bert_config.json",
         "config_sentence_transformers.json")  # fmt: skip
_DENSE_ACTIVATIONS = {"Identity": False, "Tanh": True}
_MODULES = ("Transformer", "Pooling", "Dense", "Normalize")
_MAX_TOKENIZER = 1 << 28


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
        with reading(self.path / self.pieces) as path:
            return read_plain(path, _MAX_TOKENIZER).decode("utf-8", "replace")

    @cached_property
    def checksum(self) -> str:
        """Tells encoders apart that give other ids or vectors: SHA-256 of settings, tokenizer
        and weights."""
        settings = {**asdict(self), "path": "", "dense": [each.has_tanh for each in self.dense]}
        found = sha256(json.dumps(settings, sort_keys=True).encode())
        found.update(self.tokenizer.encode("utf-8"))
        for each in self.dense:
            found.update(each.W.tobytes() + each.b.tobytes())
        with reading(self.path / self.weights) as path, open_plain(path) as file:
            while block := file.read(1 << 20):
                found.update(block)
        return found.hexdigest()

    def tensors(self) -> Tensors:
        """The weights, float32, under BERT's names ("encoder.layer.0.output.dense.bias").

        RAISES (ModelError): If some are missing, have another shape or are not finite.
        """
        sizes = self.sizes
        return read_tensors(self.path / self.weights, shapes_of(sizes), sizes.family)


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
    sizes = read_sizes(place / CONFIG, _read_json(place / CONFIG))
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
    for _ in slices(place / WEIGHTS, shapes_of(sizes), sizes.family):
        pass  # Each one is checked, and none is read.
    return PretrainedFolder(place, sizes, pooling, tuple(dense), normalise, max_tokens, prompt)


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
    ((_, part),) = slices(folder / weights, [(WORDS, (-1, -1))], TABLE)
    normalise = config.get("normalize") is True
    sizes = Sizes(TABLE, *part.get_shape())
    return PretrainedFolder(folder, sizes, normalise=normalise, weights=weights, pieces=pieces)


def _read_modules(folder: Path) -> List[Tuple[str, str]]:
    """Kind and folder of each of sentence-transformers' modules."""
    path = folder / "modules.json"
    if not path.exists():
        return [("Transformer", "")]
    try:
        with reading(path) as real:
            parts: Any = parse_json(read_plain(real))
        modules = [(each["type"].rpartition(".")[2], str(each["path"])) for each in parts]
        if any(PurePath(name).is_absolute() or ".." in PurePath(name).parts for _, name in modules):
            raise ValueError
    except (TypeError, LookupError, AttributeError, ValueError):
        text = "is no list of modules, each with a type and a path in this folder"
        raise ModelError(f"{path}  {text}.") from None
    found = [kind for kind, _ in modules]
    expected = ["Transformer", "Pooling", *["Dense"] * found.count("Dense")]
    if found not in (expected, [*expected, "Normalize"], expected[:1]):
        text = f"{path}  has the modules {', '.join(found)[:200]}. Supported, in this order"
        raise ModelError(f"{text}: {', '.join(_MODULES)}.")
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


def _read_pooling(path: Path) -> str:
    config = _read_json(path)
    old = "pooling_mode_"
    chosen = [key[len(old) :] for key, on in config.items() if key.startswith(old) and on]
    mode = config.get("pooling_mode", "+".join(chosen).replace("_tokens", "").replace("_token", ""))
    check_known(path, "pooling_mode", mode, POOLINGS)
    return POOLINGS[mode]


def _read_dense(folder: Path, width: int) -> Dense:
    config = _read_json(folder / CONFIG)
    name = str(config.get("activation_function", "Tanh")).rpartition(".")[2]
    n_out = config.get("out_features")
    if name not in _DENSE_ACTIVATIONS or type(n_out) is not int or config.get("bias") is False:
        text = f"{folder / CONFIG}  expected out_features, a bias, and one of the activations"
        raise ModelError(f"{text} {', '.join(_DENSE_ACTIVATIONS)}.")
    shapes = [("linear.weight", (n_out, width)), ("linear.bias", (n_out,))]
    W, b = read_tensors(folder / WEIGHTS, shapes, "").values()
    return Dense(W, b, _DENSE_ACTIVATIONS[name])


def _read_json(path: Path, *, optional: bool = False) -> Dict[str, Any]:
    if optional and not path.exists():
        return {}
    return read_json(Path(os.path.realpath(path)), "Download it again.")
