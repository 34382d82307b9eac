"""Build and read the stores of a config's data (``[loader] store``). A store is built once, and
then read instead of the data.

    STORE/TASK/SPLIT/examples/          the teacher's examples, after its mutators
    STORE/TASK/SPLIT/tokens-XXXXXXXX/   the token ids of one encoder
    STORE/TASK/SPLIT/observed-XXXXXXXX/ both, after the preprocessing of one agent
    STORE/tokenizer-XXXXXXXX/           a tokenizer built from the examples

A store records its sources (see ``made_of``), and is read only if they have not changed.
"""

import hashlib
import json
import shutil
import time
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import (
    Any,
    Callable,
    Dict,
    Iterator,
    List,
    Literal,
    NamedTuple,
    Optional,
    Sequence,
    TextIO,
    Tuple,
)
from urllib.parse import quote

from ..data import Tokenizer
from ..data.text_encoder import TextEncoder
from ..data.token_writer import CarryOut, write_tokens
from ..data.tokenizers.tokenizer import load_tokenizer
from ..errors import ConfigError, DataError, Problem
from ..examples.mapped_store import MappedStore, mapped_tokens
from ..examples.split import Split
from ..examples.store_writer import StoreWriter
from ..files.fingerprint import checksums, find_damage
from ..files.shard_folder import MANIFEST, read_manifest
from ..files.whole_file import writing, written_whole
from ..messages import SPLITS
from ..teachers import Teacher
from .made_of import DAMAGED_MANIFEST, FORMAT, difference, facts_of, files_of, hashes_of, made_of
from .preprocessing import Preprocessing
from .reading_bar import reading_bar

Building = Literal["none", "new", "all"]
# Errors that occur if a manifest is valid JSON, but not the manifest of a store.
_NO_MANIFEST = (LookupError, ValueError, TypeError, AttributeError)
_CONTINUE = "The files written so far are kept: start again to continue."


class Built(NamedTuple):
    """Describe a store, or the tokens of a store, and whether it was built now.

    name (str): "TASK/SPLIT" for a store, "TASK/SPLIT tokens" for tokens.
    folder (Path): Folder of the store or the tokens.
    reason (str): Reason why it was built; "" if a valid one existed.
    examples (int): Number of examples.
    size (int): Size on disk, in bytes.
    """

    name: str
    folder: Path
    reason: str
    examples: int
    size: int


class Stores:
    """Build and open the stores of all tasks and splits of an experiment.

    root (Path): The folder of ``[loader] store``.
    experiment (Experiment): The experiment, with its tasks, agent, code and readers.
    preprocessing (Optional[Preprocessing]): Lets the agent observe examples before they are stored.
    """

    def __init__(self, root: Path, experiment: Any, preprocessing: Optional[Preprocessing] = None):
        self.root, self.preprocessing = root, preprocessing
        self.tasks: Dict[str, Teacher] = experiment.tasks
        self.settings: Dict[str, Any] = experiment.checked.interpolated["tasks"]
        self.code: List[str] = experiment.code
        # Run the tokenization in this process or in worker processes.
        self.carry_out: CarryOut = experiment.readers.carry_out
        # The agent and the store must agree on which labels are errors.
        agent = experiment.agent
        self.outside_labels: bool = agent.ignore_bad_candidates or agent.has_label_sets
        self._opened: Dict[Tuple[str, str], MappedStore] = {}

    def folder(self, task: str, split: str) -> Path:
        """Return the folder of a split's store. An agent that preprocesses has its own."""
        folder = self.root / quote(task, safe="") / split
        agent = self.preprocessing
        return folder if agent is None else place_of(folder, "observed", agent.settings)

    def _all(self) -> Iterator[Tuple[str, str, Split]]:
        for task, teacher in self.tasks.items():
            for split in teacher.splits:
                yield task, split, teacher.data[split]

    # --- examples -------------------------------------------------------------------------

    def use_examples(self, stderr: TextIO, building: Building = "new") -> List[Built]:
        """Let the teachers read from stores instead of the data.

        stderr (TextIO): Stream to show progress on.
        building (str): Which stores to build: "new" (stores that are missing), "all" (stores that
            are missing, out of date or damaged) or "none" (splits without a valid store are read
            from their data).
        RETURNS (List[Built]): The stores that are read.
        RAISES (ConfigError): If data is endless, because it cannot be stored.
        RAISES (DataError): If a store is out of date and ``building`` is "new", or is damaged.
        """
        found = [self._use(*each, stderr, building) for each in self._all()]
        if self.preprocessing is not None and None not in found:
            self.preprocessing.agent.takes_batches = True
        return [each for each in found if each is not None]

    def _use(
        self, task: str, split: str, data: Split, stderr: TextIO, building: Building
    ) -> Optional[Built]:
        """Open the store of a split, building it first if needed; None if there is none to read."""
        folder, name = self.folder(task, split) / "examples", f"{task}/{split}"
        if data.endless:
            text = f"[tasks.{task}] has endless data, which cannot be stored"
            raise ConfigError([Problem("", text, "leave [loader] store at null")])

        def change(manifest: Dict[str, Any]) -> str:
            found = self._change(task, split, manifest)
            if found and building == "new":
                text = f"was built from other sources: {found}"
                raise DataError(folder, f"{text}. Build it again: run build with this config")
            return found

        look = partial(_open_store, folder)
        reason = _reason_to_build(folder, building, "it did not exist", change, look)
        if reason and building == "none":
            return None
        if reason:
            self._build(task, split, folder, data, stderr)
        store = self._opened[task, split] = _open_store(folder)
        data.use(store)
        return Built(name, folder, reason, store.n_rows, _size(folder))

    def _build(self, task: str, split: str, folder: Path, data: Split, stderr: TextIO) -> None:
        """Build the store of a split, and delete tokens of its earlier examples."""
        facts = facts_of(files_of(data, self._settings(task, split)))
        wanted = self._made_of(task, split)
        with writing(folder, _CONTINUE):
            writer = StoreWriter(folder, wanted)
            bar = reading_bar(stderr, f"Building {task}/{split}", "examples")
            shards = data.shards(writer.next)
            with closing(writer.files), bar as progress, closing(shards):
                for block in shards:
                    shard: Any = block.store
                    if self.preprocessing is not None:
                        shard = self.preprocessing.observed(shard, task, split == "train")
                    after: Any = block.end
                    writer.add(shard, {**after, "left_out": _left_out(data, writer)})
                    if progress is not None:
                        progress(writer.n_rows)
                if facts != facts_of(files_of(data, self._settings(task, split))):
                    raise DataError(folder, "the data changed during the build: build it again")
                left_out = _left_out(data, writer)
                about = {"facts": facts, "hashed": time.time_ns(), "left_out": left_out}
                writer.finish(about, lambda new: data.check_ids(_open_store(new)))
        for path in folder.parent.glob("tokens-*"):
            shutil.rmtree(path, ignore_errors=True)

    def _made_of(
        self, task: str, split: str, manifest: Optional[Dict[str, Any]] = None
    ) -> Dict[str, Any]:
        """Return the sources of a split's store (see ``made_of``)."""
        settings, data = self._settings(task, split), self.tasks[task].data[split]
        return made_of(settings, data, self.code, self.outside_labels, manifest)

    def _change(self, task: str, split: str, manifest: Dict[str, Any]) -> str:
        """Describe how the sources of a split's store have changed; "" if they have not."""
        return difference(manifest.get("fingerprint"), self._made_of(task, split, manifest))

    def _settings(self, task: str, split: str) -> Dict[str, Any]:
        """Return the settings of a task that affect a split. A stream has the same examples as
        data in memory."""
        others = {"streaming", *SPLITS} - {split}
        return {name: value for name, value in self.settings[task].items() if name not in others}

    def about(self, task: str, split: str) -> str:
        """Describe the store of a split on disk, and whether training would read it."""
        folder = self.folder(task, split) / "examples"
        manifest = read_manifest(folder)
        if manifest is None:
            return "not built"
        stale = self._change(task, split, manifest)
        found = f"{_size(folder) / 1e6:,.1f} MB"
        tokens = [
            f"{_size(path) / 1e6:,.1f}" for path in sorted(folder.parent.glob("tokens-*[0-9a-f]"))
        ]
        found += f", tokens {' + '.join(tokens)} MB" if tokens else ", no tokens"
        return f"{found}; stale: {stale}" if stale else found

    # --- tokens ---------------------------------------------------------------------------

    def tokenizer_place(self, settings: Any, names: Sequence[str]) -> Optional[Path]:
        """Return the folder of the tokenizer that is built from the training data; None if not all
        tasks are read from stores.

        settings (Any): The section ``[tokenizer]`` of the config, as JSON values.
        names (Sequence[str]): Names of the tasks to train on.
        """
        if not all((task, "train") in self._opened for task in names):
            return None
        manifests = [read_manifest(self._opened[task, "train"].folder) or {} for task in names]
        data = [manifest.get("files") for manifest in manifests]
        made_of = [FORMAT, settings, hashes_of(self.code), data]
        return place_of(self.root, "tokenizer", made_of)

    def use_tokens(
        self, encoder: Optional[TextEncoder], stderr: TextIO, building: Building = "new"
    ) -> List[Built]:
        """Let the agent read stored tokens instead of texts. Tokens that are missing or out of date
        are computed first.

        encoder (Optional[TextEncoder]): The agent's encoder, ready to use; None if it has none.
        stderr (TextIO): Stream to show progress on.
        building (str): Which tokens to compute: "new" (missing or out of date), "all" (also
            damaged) or "none" (examples without stored tokens are tokenized when they are read).
        RETURNS (List[Built]): The stored tokens that are read.
        RAISES (DataError): If tokens are damaged.
        """
        if encoder is None or encoder.key is None:
            return []
        found = []
        for (task, split), store in self._opened.items():
            # Conversations of several turns are tokenized turn by turn when they are read.
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
        """Open the stored tokens of a store, computing them first if needed; None if there are none
        to read."""
        assert encoder.key is not None
        folder = store.folder.with_name(f"tokens-{encoder.key[:16]}")
        of_store = read_manifest(store.folder) or {}
        wanted = {"format": FORMAT, "examples": of_store.get("files"), "encoder": encoder.key}
        look = partial(mapped_tokens, folder, store, encoder.tokenizer.n_ids)

        def change(manifest: Dict[str, Any]) -> str:
            return "the examples have changed" if manifest.get("fingerprint") != wanted else ""

        reason = _reason_to_build(folder, building, "they did not exist", change, look)
        if reason and building == "none":
            return None
        if reason:
            bar = reading_bar(stderr, f"Tokenizing {name}", "examples")
            with writing(folder, _CONTINUE), bar as progress:
                write_tokens(store, encoder, folder, wanted, self.carry_out, progress)
        store.tokens[encoder.key] = look()
        return Built(f"{name} tokens", folder, reason, store.n_rows, _size(folder))


def _left_out(data: Split, writer: StoreWriter) -> Dict[str, Sequence[Any]]:
    """Return the counts of skipped data of each file (see ``BadData.numbers``), including counts
    from before a build was interrupted."""
    before = (writer.next or {}).get("left_out", {})
    return {**before, **{bad.path: bad.numbers() for bad in data.bad_data()}}


def _open_store(folder: Path) -> MappedStore:
    """Open the store in a folder.

    RAISES (DataError): If the store is damaged.
    """
    try:
        return MappedStore(folder, read_manifest(folder) or {})
    except _NO_MANIFEST:
        text = "has a damaged manifest. Remove the folder and build it again."
        raise DataError(folder, text) from None


def _reason_to_build(
    folder: Path,
    building: Building,
    new: str,
    change: Callable[[Dict[str, Any]], str] = lambda manifest: "",
    look: Callable[[], Any] = lambda: None,
) -> str:
    """Return the reason to build a store, tokens or a tokenizer; "" if the folder is valid. The
    folder is checked for damage only if damaged stores are built again.

    new (str): The reason if there is no manifest.
    change (Callable): Describes how the sources differ from those in a manifest; "" if they do not.
    look (Callable): Opens the folder; raises an error if it is damaged.
    RAISES (DataError): If the manifest is damaged, and damaged stores are not built again.
    """
    try:
        manifest = read_manifest(folder)
    except DataError:
        if building != "all":
            raise
        return DAMAGED_MANIFEST
    if manifest is None:
        return new
    reason = change(manifest)
    if reason or building != "all":
        return reason
    try:
        reason = find_damage(folder, manifest["files"])
        if not reason:
            look()
        return reason
    except DataError as error:
        return str(error)
    except _NO_MANIFEST:
        return DAMAGED_MANIFEST


# --- tokenizers ---------------------------------------------------------------------------


def place_of(root: Path, kind: str, made_of: Any) -> Path:
    """Return the folder of something in a store, such as a tokenizer.

    root (Path): Folder that contains it.
    kind (str): First part of the folder's name.
    made_of (Any): Settings and data that it is built from, as JSON.
    """
    text = json.dumps(made_of, sort_keys=True)
    return root / f"{kind}-{hashlib.sha256(text.encode()).hexdigest()[:16]}"


def load_kept(tokenizer: Tokenizer, place: Path) -> bool:
    """Load a tokenizer if it was saved and is not damaged, so that it needs no texts.

    RETURNS (bool): Whether it was loaded.
    """
    if _reason_to_build(place, "all", "it did not exist"):
        return False
    load_tokenizer(tokenizer, place)
    tokenizer.needs_texts = False
    return True


def keep(tokenizer: Tokenizer, place: Path) -> None:
    """Save a tokenizer for later runs.

    RAISES (OutputError): If it cannot be written.
    """
    with written_whole(place) as folder:
        tokenizer.to_disk(folder / "tokenizer")
        paths = sorted(path for path in folder.rglob("*") if path.is_file())
        manifest = json.dumps({"files": checksums(folder, paths)})
        (folder / MANIFEST).write_text(manifest, encoding="utf8")


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir())
