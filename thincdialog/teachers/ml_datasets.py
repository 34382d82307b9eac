"""A teacher of the data sets of the package ml_datasets, by the names of its loaders."""

import inspect
import random
from functools import lru_cache, partial
from itertools import islice
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Optional, Set, Tuple, Union
from urllib.error import URLError

import numpy as np

from ..errors import ConfigError, DataError, Problem
from ..files.pickles import HOW, are_allowed
from ..formats.wording import nearest, short
from ..messages import Episode, Message
from ..registry import registry
from .teacher import Teacher

NAME = "thincdialog.MLDatasets.v1"
# Packages that read pickles.
_PICKLING = ("pickle", "_pickle", "cloudpickle", "dill", "joblib", "torch", "shelve")


@registry.teachers("thincdialog.MLDatasets.v1")
def MLDatasets(
    loader: str,
    arguments: Optional[Dict[str, Any]] = None,
    limit: int = 0,
    seed: int = 0,
    mutators: Optional[Union[List[Any], Dict[str, Any]]] = None,
) -> Teacher:
    """Read a data set of the package ml_datasets, by the name of its loader: `mnist`, `imdb`,
    `quora_questions`, ..., or a custom loader that is registered there. The first part that the
    loader returns is the split `train`, and the second one `dev` (`wikiner` has no `dev`).

    A text becomes the `text` of a message; pairs of texts are joined by a line end, and lists of
    words or word numbers by blanks. Arrays of floats are flattened and become `features`, with an
    empty text. Labels become strings: the class number of a one-hot row, and tags joined by
    blanks. All classes are the `label_candidates`, unless the labels are tags.

    Loaders download their data on first use, into ~/.keras, or into /tmp/.keras if ~/.keras cannot
    be written. `mnist`, `cifar` and `reuters` unpickle files there, which can run any code, so they
    need `--allow-pickle` on the command line.

    loader (str): Name of the loader.
    arguments (Optional[Dict]): Further arguments of the loader, for instance `variant`
        of mnist, or `loc`, `train_loc`, `dev_loc` and `file_`, which are paths. The default of
        `shuffle` is false here, because teachers shuffle.
    limit (int): Number of examples to use from the beginning of each split; 0 for all.
    seed (int): Seed of the draws that some loaders make to split their data.
    mutators (Optional[Union[List, Dict]]): Mutators to apply in order, each in a section
        `[tasks.x.mutators.name]`.
    RAISES (ConfigError): If there is no such loader, or the arguments do not fit it.
    """
    function = _loader(loader)
    given = dict(arguments or {})
    signature = inspect.signature(function)
    if "shuffle" in signature.parameters:
        given.setdefault("shuffle", False)
    try:
        signature.bind(**given)
    except TypeError as error:
        text = f"'arguments' of {NAME} do not fit the loader '{loader}': {error}"
        hint = f"it takes {', '.join(signature.parameters) or 'none'}"
        raise ConfigError([Problem("", text, hint)]) from None
    origin = f"ml_datasets.{loader}"

    @lru_cache(maxsize=1)
    def loaded() -> List[List[Message]]:
        if _unpickles(function) and not are_allowed():
            text = "this loader unpickles files, and a pickle can run any code on your machine"
            raise DataError(origin, f"{text}: if you trust them, {HOW}")
        found: Set[str] = set()
        classes: List[str] = []  # One list in all messages, filled when all labels are known.
        parts: List[List[Message]] = []
        for part in _load(function, given, seed, origin):
            parts.append([])
            for place, (item, label) in enumerate(_pairs(part, limit, origin)):
                has_tags = _is_sequence(item) and _is_sequence(label)
                labels = [" ".join(map(_class, label))] if has_tags else _classes(label)
                message = _message(item, labels, has_tags, origin)
                message["id"] = f"{place}/0"
                if not has_tags:
                    found.update(labels)
                    message["label_candidates"] = classes
                parts[-1].append(message)
        are_numbers = all(name.isdecimal() for name in found)
        classes += sorted(found, key=int if are_numbers else str)
        return parts

    def source(number: int) -> Iterator[Episode]:
        return ([Message(message)] for message in loaded()[number])

    splits = ["train"] if "file_" in signature.parameters else ["train", "dev"]
    return Teacher(
        {split: partial(source, number) for number, split in enumerate(splits)},
        mutators=mutators,
        single_turn=True,
        origin=origin,
    )


def _unpickles(function: Callable) -> bool:
    """Return whether the module of a loader imports a package that unpickles."""
    known = getattr(inspect.unwrap(function), "__globals__", {}).values()
    names = {each.__name__ for each in known if inspect.ismodule(each)}
    return not names.isdisjoint(_PICKLING)


def _loader(name: str) -> Callable:
    import ml_datasets.loaders
    from ml_datasets._registry import register_loader

    known = dict(inspect.getmembers(ml_datasets.loaders, inspect.isfunction))
    known.update(register_loader.get_all())
    if name not in known:
        text = f"'loader' of {NAME} is '{name}', which ml_datasets does not have"
        hint = nearest(name, list(known)).lstrip("; ")
        raise ConfigError([Problem("", text, hint or f"it has {', '.join(sorted(known))}")])
    return known[name]


def _load(function: Callable, given: Dict[str, Any], seed: int, origin: str) -> List[Any]:
    """Return the parts that a loader returns. The global random states are seeded for the loader,
    and restored afterwards."""
    states = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed & 0xFFFFFFFF)
    given = {
        name: Path(value) if name in ("loc", "train_loc", "dev_loc") else value
        for name, value in given.items()
    }
    try:
        if "file_" in given:
            with open(given["file_"], encoding="utf8") as stream:
                return [list(function(**{**given, "file_": stream}))]
        loaded = function(**given)
        return list(loaded) if isinstance(loaded, tuple) else [list(loaded)]
    except URLError as error:
        text = f"the data could not be downloaded ({error.reason}): connect to the network once"
        raise DataError(origin, f"{text}, or give the path of a copy in 'arguments'") from None
    except Exception as error:  # Loaders raise any error that occurs when they parse files.
        text = f"the loader failed with {type(error).__name__}: {error}"
        raise DataError(origin, text) from error
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])


def _pairs(part: Any, limit: int, origin: str) -> Iterator[Tuple[Any, Any]]:
    """Return an iterator over pairs of an input and its label. A loader returns (inputs, labels),
    or a list of pairs."""
    if isinstance(part, tuple) and len(part) == 2:
        inputs, labels = part
        if len(inputs) != len(labels):
            text = f"the loader returned {len(inputs)} inputs, but {len(labels)} labels"
            raise DataError(origin, text)
        part = zip(inputs, labels)
    return islice(part, limit or None)


def _message(item: Any, labels: List[str], has_tags: bool, origin: str) -> Message:
    if isinstance(item, str):
        return Message(text=item, labels=labels)
    if isinstance(item, np.ndarray) and item.dtype.kind == "f":
        features = np.ascontiguousarray(item, dtype="f").ravel()
        return Message(text="", features=features, labels=labels)
    if isinstance(item, (list, tuple, np.ndarray)):
        is_pair = not has_tags and all(isinstance(part, str) for part in item)
        return Message(text=("\n" if is_pair else " ").join(map(str, item)), labels=labels)
    raise DataError(origin, f"cannot make a message from {short(item)}: expected text or an array")


def _is_sequence(value: Any) -> bool:
    """Return whether a value is a sequence of words or tags: a list, or an array that is not a
    one-hot row."""
    if isinstance(value, np.ndarray):
        return value.ndim == 2 or value.dtype.kind in "iu"
    return isinstance(value, (list, tuple))


def _classes(label: Any) -> List[str]:
    # Sorted, because the labels of cmu are in a set, which has no fixed order.
    several = sorted(label) if isinstance(label, (list, tuple, set)) else [label]
    return [_class(one) for one in several]


def _class(label: Any) -> str:
    """Return a label as text; for a one-hot row, the number of its class."""
    return str(int(label.argmax())) if isinstance(label, np.ndarray) else str(label)
