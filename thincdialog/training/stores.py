"""The stores of a config's data: ``[loader] store``. Made once, then shown in the data's place.

    STORE/TASK/SPLIT/examples/          what the teacher gives, behind its mutators
    STORE/TASK/SPLIT/tokens-XXXXXXXX/   the token ids of one encoder
    STORE/tokenizer-XXXXXXXX/           a tokenizer that was built of them (``kept_tokenizer``)

A store says what it was made of. It is shown only while this is so.
"""

import hashlib
import json
import os
import shutil
import time
from contextlib import closing
from pathlib import Path
from typing import Any, Callable, Dict, Iterator, List, Literal, NamedTuple, Optional, TextIO, Tuple
from urllib.parse import quote

from ..data.text_encoder import TextEncoder
from ..data.token_writer import write_tokens
from ..errors import ConfigError, DataError, Problem
from ..examples.mapped_store import MappedStore
from ..examples.mapped_tokens import MappedTokens
from ..examples.split import Split
from ..examples.store_writer import StoreWriter
from ..files.checksums import find_damage
from ..files.growing_folder import read_manifest
from ..files.plain_file import check_whole
from ..files.whole_file import writing
from ..loggers.values import leaves
from ..messages import SPLITS
from ..teachers import Teacher
from .kept_tokenizer import place_of
from .reading_bar import reading_bar

# Of all that follows; a store of another format is made anew.
FORMAT = 1
# A file may have changed without its time telling, if that is so new; nanoseconds.
_NEW = 2_000_000_000
_CHUNK = 1 << 20

DAMAGED_MANIFEST = "its manifest is damaged"

Building = Literal["none", "new", "all"]


class Built(NamedTuple):
    """What became of a store, or of its tokens.

    name (str): "TASK/SPLIT", or "TASK/SPLIT tokens".
    folder (Path): Where it lies.
    reason (str): Why it was built; "" if it was there.
    examples (int): How many.
    size (int): Bytes on disk.
    """

    name: str
    folder: Path
    reason: str
    examples: int
    size: int


class Stores:
    """The stores of all tasks and splits of an experiment.

    root (Path): The folder of ``[loader] store``.
    tasks (Dict[str, Teacher]): By name.
    settings (Dict[str, Any]): ``[tasks]``, by name.
    code (List[str]): Files that the config's functions come from.
    outside_labels (bool): Whether labels may stand outside their candidates.
    """

    def __init__(
        self,
        root: Path,
        tasks: Dict[str, Teacher],
        settings: Dict[str, Any],
        code: List[str],
        outside_labels: bool,
    ):
        self.root, self.tasks, self.settings = root, tasks, settings
        self.code, self.outside_labels = code, outside_labels
        self._opened: Dict[Tuple[str, str], MappedStore] = {}

    def folder(self, task: str, split: str) -> Path:
        """Where a split's store lies."""
        return self.root / quote(task, safe="") / split

    def _all(self) -> Iterator[Tuple[str, str, Split]]:
        for task, teacher in self.tasks.items():
            for split in teacher.splits:
                yield task, split, teacher.data_of(split)

    # --- examples -------------------------------------------------------------------------

    def use_examples(self, stderr: TextIO, building: Building = "new") -> List[Built]:
        """Show the stores in the place of the data.

        stderr (TextIO): Where to show progress.
        building (str): Which are built: "new" ones, "all" that are not there, or of something
            else, or damaged; or "none": splits without a good store are read as they are.
        RAISES (DataError): If one is of something else, and only new ones are built.
        """
        found = [self._use(*each, stderr, building) for each in self._all()]
        return [each for each in found if each is not None]

    def _use(
        self, task: str, split: str, data: Split, stderr: TextIO, building: Building
    ) -> Optional[Built]:
        folder, name = self.folder(task, split) / "examples", f"{task}/{split}"
        if data.endless:
            text = f"[tasks.{task}] has data without an end, of which no store can be made"
            raise ConfigError([Problem("", text, "leave [loader] store at null")])
        manifest, damage = _manifest_to_use(folder, building)
        wanted = self._fingerprint(task, split, data, manifest)
        reason = damage or self._why_stale(folder, manifest, wanted, building == "all")
        if reason and building == "none":
            return None
        if reason and manifest is not None and building == "new":
            text = f"was built of something else: {reason}"
            raise DataError(folder, f"{text}. Build it again: the command build, with this config")
        if reason:
            self._build(name, folder, data, wanted, stderr)
            manifest = read_manifest(folder)
        store = self._opened[task, split] = open_store(folder, manifest)
        data.use(store)
        return Built(name, folder, reason, store.n_rows, _size(folder))

    def _why_stale(
        self, folder: Path, manifest: Optional[Dict[str, Any]], wanted: Any, is_thorough: bool
    ) -> str:
        """Why a store cannot be shown; "" if it can."""
        if manifest is None:
            return "it is new"
        different = _difference(manifest.get("fingerprint"), wanted)
        if different or not is_thorough:
            return different
        return _damage(folder, manifest, lambda: open_store(folder, manifest))

    def _build(self, name: str, folder: Path, data: Split, wanted: Any, stderr: TextIO) -> None:
        facts = [_facts(path) for path in _files_of(data)]
        with writing(folder, "What was written is kept: begin again to go on."):
            writer = StoreWriter(folder, wanted)
            try:
                title = f"Building {name}"
                bar = reading_bar(stderr, title, "examples")
                with bar as progress, closing(data.shards(writer.next)) as shards:
                    for shard, after in shards:
                        writer.add(shard, after)
                        if progress is not None:
                            progress(writer.n_rows)
                if facts != [_facts(path) for path in _files_of(data)]:
                    raise DataError(folder, "its data changed while it was built: build it again")
                writer.finish({"facts": facts, "hashed": time.time_ns()})
            finally:
                writer.files.close()
        for path in [*folder.parent.glob("tokens-*"), *self.root.glob("tokenizer-*")]:
            shutil.rmtree(path, ignore_errors=True)

    def _fingerprint(
        self, task: str, split: str, data: Split, manifest: Optional[Dict[str, Any]]
    ) -> Dict[str, Any]:
        """What a store is made of, as JSON."""
        block = {
            name: value
            for name, value in self.settings[task].items()
            if name not in SPLITS or name == split
        }
        found = {
            "format": FORMAT,
            "settings": block,
            "files": self._hashes(data, manifest),
            "code": [[Path(path).name, _hash(path)] for path in self.code],
            "outside_labels": self.outside_labels,
        }
        # As it will be read from the manifest.
        return dict(json.loads(json.dumps(found)))

    def _hashes(self, data: Split, manifest: Optional[Dict[str, Any]]) -> List[Any]:
        """Name and hash of each file; one that is as it was is not read again."""
        facts = [_facts(path) for path in _files_of(data)]
        try:
            if manifest is not None and manifest["facts"] == facts:
                if all(each[2] < manifest["hashed"] - _NEW for each in facts):
                    return list(manifest["fingerprint"]["files"])
        except (LookupError, TypeError):
            pass
        return [[Path(path).name, _hash(path)] for path in _files_of(data)]

    def about(self, task: str, split: str) -> str:
        """What is on disk of a split, and whether training would read it, in words."""
        folder = self.folder(task, split) / "examples"
        manifest = read_manifest(folder)
        if manifest is None:
            return "not built"
        data = self.tasks[task].data_of(split)
        stale = _difference(
            manifest.get("fingerprint"), self._fingerprint(task, split, data, manifest)
        )
        found = f"{_size(folder) / 1e6:,.1f} MB"
        tokens = [
            f"{_size(path) / 1e6:,.1f}" for path in sorted(folder.parent.glob("tokens-*[0-9a-f]"))
        ]
        found += f", tokens {' + '.join(tokens)} MB" if tokens else ", no tokens"
        return f"{found}; stale: {stale}" if stale else found

    # --- tokens ---------------------------------------------------------------------------

    def tokenizer_place(self, settings: Any) -> Optional[Path]:
        """Where the tokenizer lies that is built of the training data; None if not all of these
        are shown from stores.

        settings (Any): ``[tokenizer]``, as JSON.
        """
        names = [task for task, teacher in self.tasks.items() if "train" in teacher.splits]
        if not all((task, "train") in self._opened for task in names):
            return None
        manifests = [read_manifest(self._opened[task, "train"].folder) or {} for task in names]
        data = [manifest.get("files") for manifest in manifests]
        code = [[Path(path).name, _hash(path)] for path in self.code]
        return place_of(self.root, [FORMAT, settings, code, data])

    def use_tokens(
        self, encoder: Optional[TextEncoder], stderr: TextIO, building: Building = "new"
    ) -> List[Built]:
        """Let the agent read tokens in the place of texts; make those that are not there.

        encoder (Optional[TextEncoder]): The agent's, ready to encode; None if it has none.
        building (str): "none": what has no tokens is tokenized as it is read.
        RAISES (DataError): If some are damaged.
        """
        if encoder is None or encoder.key is None:
            return []
        found = []
        for (task, split), store in self._opened.items():
            # Longer conversations are heard turn by turn.
            if store.is_single_turn:
                found.append(self._use_tokens(f"{task}/{split}", store, encoder, stderr, building))
        return [each for each in found if each is not None]

    def _use_tokens(
        self,
        name: str,
        store: MappedStore,
        encoder: TextEncoder,
        stderr: TextIO,
        building: Building,
    ) -> Optional[Built]:
        assert encoder.key is not None
        folder = store.folder.with_name(f"tokens-{encoder.key[:16]}")
        of_store = read_manifest(store.folder) or {}
        wanted = {"format": FORMAT, "examples": of_store.get("files"), "encoder": encoder.key}
        manifest, reason = _manifest_to_use(folder, building)
        if not reason and (manifest is None or manifest.get("fingerprint") != wanted):
            if building == "none":
                return None
            reason = "they are new" if manifest is None else "the examples are others"
        elif not reason and building == "all":
            found = manifest
            reason = _damage(folder, found, lambda: _open_tokens(folder, found, store, encoder))
        if reason:
            title = f"Tokenizing {name}"
            with writing(folder, "What was written is kept: begin again to go on."):
                with reading_bar(stderr, title, "examples") as progress:
                    write_tokens(store, encoder, folder, wanted, progress)
            manifest = read_manifest(folder)
        tokens = _open_tokens(folder, manifest, store, encoder)
        store.tokens[encoder.key] = tokens
        return Built(f"{name} tokens", folder, reason, store.n_rows, _size(folder))


def open_store(folder: Path, manifest: Optional[Dict[str, Any]]) -> MappedStore:
    """The store in a folder, whose numbers were looked at.

    manifest (Optional[Dict[str, Any]]): What its manifest says.
    RAISES (DataError): If it is damaged.
    """
    try:
        store = MappedStore(folder, manifest or {})
    except (LookupError, ValueError, TypeError, AttributeError):
        raise _damaged_manifest(folder) from None
    store.check_numbers()
    return store


def _open_tokens(
    folder: Path, manifest: Optional[Dict[str, Any]], store: MappedStore, encoder: TextEncoder
) -> MappedTokens:
    """The tokens of a store, whose numbers were looked at.

    RAISES (DataError): If they are damaged.
    """
    try:
        tokens = MappedTokens(folder, manifest or {}, store.n_rows, len(store.label_texts))
        if tokens.n_ids != encoder.tokenizer.n_ids:
            raise ValueError
    except (LookupError, ValueError, TypeError):
        raise _damaged_manifest(folder) from None
    tokens.check_numbers()
    return tokens


def _manifest_to_use(folder: Path, building: Building) -> Tuple[Optional[Dict[str, Any]], str]:
    """What a folder's manifest says, and why it is to be built anew although there is one.

    RAISES (DataError): If the manifest is damaged, and what is damaged is not built anew.
    """
    try:
        return read_manifest(folder), ""
    except DataError:
        if building != "all":
            raise
        return None, DAMAGED_MANIFEST


def _damage(folder: Path, manifest: Optional[Dict[str, Any]], look: Callable[[], Any]) -> str:
    """What is wrong with files that were built, or "".

    look (Callable): Opens them.
    """
    try:
        found = find_damage(folder, (manifest or {})["files"])
        if not found:
            look()
        return found
    except DataError as error:
        return str(error)
    except (LookupError, ValueError, TypeError, AttributeError):
        return DAMAGED_MANIFEST


def _damaged_manifest(folder: Path) -> DataError:
    return DataError(folder, "has a damaged manifest. Remove the folder and build it again.")


def _difference(before: Any, now: Dict[str, Any]) -> str:
    """What is not as it was, in words; "" if all is."""
    if not isinstance(before, dict):
        return DAMAGED_MANIFEST
    if before.get("format") != now["format"]:
        return f"its format is {before.get('format')!r}, and this version writes {now['format']}"
    known, wanted = (dict(leaves(each.get("settings", {}))) for each in (before, now))
    changed = [key for key in {**known, **wanted} if known.get(key) != wanted.get(key)]
    if changed:
        key = changed[0]
        return f"'{key}' was {known.get(key)!r}, now it is {wanted.get(key)!r}"
    for part, what in (("files", "its file"), ("code", "the code")):
        if before.get(part) != now[part]:
            others = [name for name, content in now[part] if [name, content] not in before[part]]
            return f"{what} {others[0]} has changed" if others else f"it had more {part}"
    return "" if before == now else "labels outside the candidates are read another way"


def _files_of(data: Split) -> List[str]:
    """The files that a split is read from; of a folder, all that are in it."""
    found: List[str] = []
    for path in data.files():
        inside = sorted(each for each in Path(path).rglob("*") if each.is_file())
        found += map(str, inside) if os.path.isdir(path) else [path]
    return found


def _facts(path: str) -> List[Any]:
    """What mostly changes with a file: its path, size, time and number."""
    found = os.stat(path)
    return [os.path.abspath(path), found.st_size, found.st_mtime_ns, found.st_ino]


def _hash(path: str) -> str:
    if not os.path.isfile(path):
        raise DataError(path, "is no regular file, so no store can be made of it")
    found = hashlib.sha256()
    with open(path, "rb") as file:
        try:
            check_whole(path, file)
        except OSError as error:
            raise DataError(path, f"cannot be read: {error.strerror}") from None
        while chunk := file.read(_CHUNK):
            found.update(chunk)
    return found.hexdigest()


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())
