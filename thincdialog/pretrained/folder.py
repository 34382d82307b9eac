"""Read the folder of a published encoder, as Hugging Face and sentence-transformers lay it out."""

import os
import re
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path, PurePath
from typing import Any, Dict, List, NamedTuple, Optional, Tuple

import numpy as np

from ..errors import ModelError
from ..files.fingerprint import checksum_of
from ..files.json_file import read_json
from ..files.json_text import parse_json
from ..files.plain_file import open_plain, read_plain
from .families import TABLE, WORDS, Sizes, check_known, read_number, read_sizes, shapes_of
from .weights import find_tensors, read_tensors, reading

POOLINGS = {"cls": "first", "mean": "mean", "max": "max"}
WEIGHTS, TOKENIZER, CONFIG = "model.safetensors", "tokenizer.json", "config.json"
# Files of sentence-transformers.
MODULES, LIMITS = "modules.json", "sentence_bert_config.json"
PROMPTS = "config_sentence_transformers.json"
FILES = (CONFIG, WEIGHTS, TOKENIZER, MODULES, LIMITS, PROMPTS)


class Dense(NamedTuple):
    """Hold a linear layer over pooled vectors.

    W (np.ndarray): Shape (nO, nI), float32.
    b (np.ndarray): Shape (nO,), float32.
    has_tanh (bool): Whether a tanh follows.
    """

    W: np.ndarray
    b: np.ndarray
    has_tanh: bool


@dataclass
class PretrainedFolder:
    """Hold the checked settings of an encoder. The weights are read by ``tensors``.

    path (Path): The folder.
    sizes (Sizes): The sizes in config.json.
    weights (str): Name of the file of the weights.
    pieces (str): Name of the file of the tokenizer.
    pooling (str): "first" (the [CLS] token), "mean" or "max".
    dense (List[Dense]): Linear layers over the pooled vector.
    normalise (bool): Whether vectors are scaled to length 1.
    max_tokens (int): Longest text, in tokens, with the special tokens.
    prompt (str): Default prompt, which is put before each text.
    files (List[str]): All files of the encoder, by their names in the folder.
    """

    path: Path
    sizes: Sizes
    weights: str
    pieces: str
    pooling: str = "mean"
    dense: List[Dense] = field(default_factory=list)
    normalise: bool = False
    max_tokens: int = 512
    prompt: str = ""
    files: List[str] = field(default_factory=list)

    @property
    def width(self) -> int:
        """Width of the vector of a text."""
        return len(self.dense[-1].b) if self.dense else self.sizes.width

    @cached_property
    def checksum(self) -> str:
        """SHA-256 of all files, as hexadecimal digits. Another checksum means that ids or vectors
        may differ."""
        found = sha256()
        for name in self.files:
            with reading(self.path / name) as path, open_plain(path) as file:
                found.update(f"{name} {checksum_of(file)}\n".encode())
        return found.hexdigest()

    def tensors(self) -> Dict[str, np.ndarray]:
        """Read the weights as float32 arrays, by BERT's names, such as
        "encoder.layer.0.output.dense.bias".

        RAISES (ModelError): If a parameter is missing, has another shape or is not finite.
        """
        return read_tensors(self.path / self.weights, shapes_of(self.sizes))


def read_folder(path: str) -> PretrainedFolder:
    """Read the settings in the folder of an encoder, and check the names and shapes of its weights
    without reading them.

    path (str): The folder: config.json, tokenizer.json and model.safetensors, and
        sentence-transformers' modules.json if there is one.
    RAISES (ModelError): If a file is missing or damaged, or a setting is not supported.
    RAISES (MissingPackageError): If safetensors is not installed.
    """
    folder = Path(path)
    if not os.path.isdir(folder):  # Path.is_dir() fails for a name that is too long.
        raise ModelError(
            f"{folder}  is not a folder. Download an encoder first, for instance with: hf download "
            "sentence-transformers/all-MiniLM-L6-v2 --local-dir minilm"
        )
    return _read_table(folder) or _read_encoder(folder)


def _read_table(folder: Path) -> Optional[PretrainedFolder]:
    """Read a table in the layout of Model2Vec or WordLlama; return None if the folder has none.

    SOURCE: https://github.com/MinishLab/model2vec, https://github.com/dleemiller/WordLlama
    """
    config, names = _read_json(folder / CONFIG), [WEIGHTS, TOKENIZER, CONFIG]
    if not config:
        weights = [*folder.glob("*_*.safetensors"), *folder.glob("weights/*_*.safetensors")]
        pieces = [*folder.glob("*tokenizer*.json"), *folder.glob("tokenizers/*.json")]
        if len(weights) != 1 or len(pieces) != 1:
            return None
        names = [str(path.relative_to(folder)) for path in (*weights, *pieces)]
    elif config.get("model_type") != TABLE:
        return None
    ((_, table),) = find_tensors(folder / names[0], [(WORDS, (-1, -1))])
    found = PretrainedFolder(folder, Sizes(TABLE, *table.get_shape()), names[0], names[1])
    found.normalise, found.files = config.get("normalize") is True, names
    return found


def _read_encoder(folder: Path) -> PretrainedFolder:
    modules = _read_modules(folder)
    place = modules.pop(0)[1]
    for name in (CONFIG, WEIGHTS, TOKENIZER):
        if not (folder / place / name).exists():
            raise ModelError(
                f"{folder / place}  has no {name}. Needed: {CONFIG}, {TOKENIZER} and {WEIGHTS}, or "
                "one table of WordLlama with one tokenizer. pytorch_model.bin is a pickle, which "
                "may run code, and is never read."
            )
    sizes = read_sizes(folder / place / CONFIG, _read_json(folder / place / CONFIG))
    for _ in find_tensors(folder / place / WEIGHTS, shapes_of(sizes)):
        pass  # The loop checks each parameter, and reads none.
    found = PretrainedFolder(folder, sizes, str(place / WEIGHTS), str(place / TOKENIZER))
    for kind, part in modules:
        if kind == "Pooling":
            found.pooling = _read_pooling(folder / part / CONFIG)
        elif kind == "Dense":
            found.dense.append(_read_dense(folder / part, found.width))
        else:
            found.normalise = True
    path = folder / place / LIMITS
    most = read_number(path, _read_json(path), ["max_seq_length"], sizes.n_places)
    found.max_tokens = min(most, sizes.n_places)
    found.prompt = _read_prompt(folder / PROMPTS)
    places = (PurePath(), place, *(part for _, part in modules))
    names = dict.fromkeys(str(part / name) for part in places for name in FILES)
    found.files = [name for name in names if (folder / name).is_file()]
    return found


def _read_modules(folder: Path) -> List[Tuple[str, PurePath]]:
    """Read the kind and the folder of each of sentence-transformers' modules."""
    if not (folder / MODULES).exists():
        return [("Transformer", PurePath())]
    with reading(folder / MODULES) as path:
        parts: Any = parse_json(read_plain(path))
        modules = [(each["type"].rpartition(".")[2], PurePath(each["path"])) for each in parts]
        if any(place.is_absolute() or ".." in place.parts for _, place in modules):
            raise ValueError("a path leads out of the folder")
    kinds = ", ".join(kind for kind, _ in modules)
    if not re.fullmatch("Transformer(, Pooling(, Dense)*(, Normalize)?)?", kinds):
        text = f"{folder / MODULES}  has the modules {kinds[:200]}. Supported, in this order"
        raise ModelError(f"{text}: Transformer, Pooling, Dense, Normalize.")
    return modules


def _read_prompt(path: Path) -> str:
    config = _read_json(path)
    with reading(path):
        prompt = (config.get("prompts") or {}).get(config.get("default_prompt_name"), "")
        if not isinstance(prompt, str):
            raise ValueError("the default prompt is not a string")
    return prompt


def _read_pooling(path: Path) -> str:
    config, old = _read_json(path), "pooling_mode_"
    chosen = [key[len(old) :] for key, on in config.items() if key.startswith(old) and on]
    mode = config.get("pooling_mode", "+".join(chosen).replace("_tokens", "").replace("_token", ""))
    check_known(path, "pooling_mode", mode, POOLINGS)
    return POOLINGS[mode]


def _read_dense(folder: Path, width: int) -> Dense:
    config = _read_json(folder / CONFIG)
    activation = str(config.get("activation_function", "Tanh")).rpartition(".")[2]
    check_known(folder / CONFIG, "activation_function", activation, ("Identity", "Tanh"))
    n_out: Any = config.get("out_features")
    shapes = [("linear.weight", (n_out, width)), ("linear.bias", (n_out,))]
    W, b = read_tensors(folder / WEIGHTS, shapes).values()
    return Dense(W, b, activation == "Tanh")


def _read_json(path: Path) -> Dict[str, Any]:
    """Read a JSON object; return an empty one if there is no such file."""
    return read_json(Path(os.path.realpath(path)), "Download it again.") if path.exists() else {}
