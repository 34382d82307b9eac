"""A store on disk returns any data that was written to it, and trusts none of its files."""

import json
import os
import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.processes import limited
from thincdialog.errors import DataError
from thincdialog.examples import MemoryStore
from thincdialog.examples.mapped_store import MappedStore
from thincdialog.examples.store_writer import StoreWriter
from thincdialog.files.shard_folder import read_manifest
from thincdialog.messages import PARTNER, SELF, Message

texts = st.text(alphabet=st.characters(), max_size=8) | st.sampled_from(
    ["", "\0", "\ud800", "a\ud800\udc00b", "yes", "no", "naïve 日本"]
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)
features = st.one_of(
    st.lists(st.floats(width=32), max_size=4).map(lambda x: np.array(x, dtype="f")),
    st.lists(st.integers(-9, 9), min_size=6, max_size=6).map(lambda x: np.array(x).reshape(2, 3)),
    st.lists(st.floats(), max_size=3),
)
turns = st.lists(st.tuples(st.sampled_from([PARTNER, SELF]), texts), max_size=3)
some = {
    "labels": st.lists(texts, max_size=3),
    "label_candidates": st.lists(texts, max_size=20),
    "context": turns,
    "features": features,
    "Odd / name": json_values.filter(lambda value: value is not None),
}
messages = st.fixed_dictionaries({"id": texts, "text": texts}, optional=some).map(Message)
shards = st.lists(st.lists(st.lists(messages, min_size=1, max_size=3), min_size=1, max_size=4),
                  min_size=1, max_size=3)  # fmt: skip


def held(episodes):
    store = MemoryStore()
    for episode in episodes:
        store.append(episode)
    return store


def built(folder, parts):
    writer = StoreWriter(folder, {"of": "a test"})
    with closing(writer.files):
        for number, part in enumerate(parts):
            writer.add(held(part), number + 1)
        writer.finish({})
    return MappedStore(folder, read_manifest(folder))


def plain(cell):
    """Convert a cell so that it can be compared."""
    return (cell.dtype, cell.shape, cell.tobytes()) if isinstance(cell, np.ndarray) else repr(cell)


# On disk, the second list of labels consists of the same numbers as the turns.
ALIKE = [
    Message(id="0", text="a", context=[(PARTNER, "a"), (PARTNER, "b")], labels=["c", "d"]),
    Message(id="1", text="b", labels=["c", "e"]),
]


@settings(max_examples=15)
@given(shards)
@example([[ALIKE]])
def test_mapped_store_returns_the_data_that_was_written(parts):
    with TemporaryDirectory() as name:
        memory = held([episode for part in parts for episode in part])
        store = built(Path(name) / "store", parts)
        rows = np.arange(memory.n_examples)[::-1]
        assert list(store.names) == list(memory.names)
        for field in [*memory.names, "none has this"]:
            wanted = list(map(plain, memory.cells(field, rows)))
            assert list(map(plain, store.cells(field, rows))) == wanted
            assert list(map(plain, store.all_cells(field))) == wanted[::-1]
        assert list(store.starts) == list(memory.starts)
        assert store.n_words.tolist() == memory.n_words.tolist()
        assert store.label_ids.tolist() == memory.label_ids.tolist()
        assert list(store.label_texts) == list(memory.label_texts)
        for unit in ("episodes", "examples", "words"):
            assert list(store.sizes(unit)) == list(memory.sizes(unit))
        messages = [{k: plain(v) for k, v in memory.message(row).items()} for row in rows]
        assert [{k: plain(v) for k, v in store.message(row).items()} for row in rows] == messages


@pytest.mark.parametrize("cell", [{1: 2}, object(), {"a": {3}}, [np.float32(1)]])
def test_values_that_cannot_be_stored_are_refused_by_name(cell, tmp_path):
    with pytest.raises(DataError, match=r"'extra' of example '7' holds"):
        built(tmp_path / "store", [[[Message(id="7", text="a", extra=cell)]]])


EPISODES = [
    [Message(id=str(n), text=f"text {n % 5}", labels=[f"label {n % 3}"], context=[(SELF, "hi")])]
    for n in range(30)
]


def damage(path, how):
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "cut":
        path.write_bytes(content[:-1])
    elif how == "longer":
        path.write_bytes(content + b"\0" * 8)
    elif how == "no header":
        path.write_bytes(b"\0" * len(content))
    elif how == "huge":
        path.write_bytes(content[:128].replace(b"(", b"(9") + content[128:])
    elif how == "objects":
        path.write_bytes(content.replace(b"'<i8'", b"'|O' ").replace(b"'<i4'", b"'|O' "))
    elif how == "folder":
        path.unlink()
        path.mkdir()
    else:
        path.write_bytes(content[:128] + b"\x7f" * (len(content) - 128))


@pytest.mark.parametrize(
    "how", ["missing", "cut", "longer", "no header", "huge", "folder", "numbers", "objects"]
)
def test_damaged_files_are_one_clear_error(how, tmp_path):
    built(tmp_path / "good", [EPISODES])
    names = sorted(path.name for path in (tmp_path / "good").glob("*.npy"))
    assert "field.text.npy" in names and "label_ids.npy" in names
    for name in names:
        folder = tmp_path / "store"
        shutil.copytree(tmp_path / "good", folder)
        path = folder / name
        before = path.read_bytes()
        damage(path, how)
        is_same = path.is_file() and path.read_bytes() == before
        try:
            store = MappedStore(folder, read_manifest(folder))
            for field in store.names:
                list(store.all_cells(field))
            list(store.label_texts)
            # Only changed lengths and bytes of strings may go unnoticed.
            assert is_same or name in ("strings.npy", "ids.npy")
        except DataError as error:
            assert str(folder) in str(error) and "\n" not in str(error)
        shutil.rmtree(folder)


def test_invalid_manifest_is_one_clear_error(tmp_path):
    built(tmp_path / "store", [EPISODES])
    (tmp_path / "store" / "manifest.json").write_text("[]")
    with pytest.raises(DataError, match="manifest.json  is damaged"):
        read_manifest(tmp_path / "store")


HOSTILE = {
    "it is a pipe": lambda path, elsewhere: os.mkfifo(path),
    "it is a folder": lambda path, elsewhere: path.mkdir(),
    "leads out of its folder": lambda path, elsewhere: path.symlink_to(elsewhere),
    "1,073,741,824 at most": lambda path, elsewhere: (path.touch(), os.truncate(path, 1 << 40)),
    "is damaged": lambda path, elsewhere: path.write_text("[" * 10_000 + "]" * 10_000),
}


@pytest.mark.parametrize("reason", HOSTILE)
def test_hostile_manifest_is_refused(reason, tmp_path):
    folder = tmp_path / "store"
    built(folder, [EPISODES])
    elsewhere = (folder / "manifest.json").rename(tmp_path / "elsewhere.json")
    HOSTILE[reason](folder / "manifest.json", elsewhere)
    with pytest.raises(DataError, match=reason) as caught:
        read_manifest(folder)
    assert "Build the store again" in str(caught.value) and "\n" not in str(caught.value)


def test_five_lines_of_numpy_read_a_text(tmp_path):
    built(tmp_path / "store", [EPISODES[:7], EPISODES[7:]])
    folder = tmp_path / "store"
    load = {path.stem: np.load(path, mmap_mode="r") for path in folder.glob("*.npy")}
    number = load["field.text"][29] >> 3
    start, end = load["strings.starts"][number : number + 2]
    assert bytes(load["strings"][start:end]).decode() == "text 4"
    assert json.loads((folder / "manifest.json").read_text())["fields"]["text"] == "field.text"


def test_mapped_store_frequent_labels_with_equal_counts_are_in_order_of_occurrence(tmp_path):
    labels = ["b", "a", "c", "a", "b", "d", "a"]
    part = [
        [Message(id=label + str(n), text="x", labels=[label])] for n, label in enumerate(labels)
    ]
    store = built(tmp_path / "store", [part, [[Message(id="without", text="x")]]])
    expected = [label for label, _ in Counter(labels).most_common()]
    for most in range(1, 6):
        assert store.frequent_labels(most) == expected[:most]


@pytest.mark.parametrize("n_done", [0, 1, 2])
def test_interrupted_build_resumes_and_gives_the_same_store(n_done, tmp_path):
    parts = [EPISODES[:9], EPISODES[9:20], EPISODES[20:]]
    built(tmp_path / "whole", parts)
    writer = StoreWriter(tmp_path / "store", {"of": "a test"})
    for number, part in enumerate(parts[:n_done]):
        writer.add(held(part), number + 1)
    # As if the build had been killed while it wrote the next shard.
    (tmp_path / "store.building" / "new").write_bytes(b"junk")
    writer.files.close()
    assert not (tmp_path / "store").exists()
    again = StoreWriter(tmp_path / "store", {"of": "a test"})
    assert again.next == (n_done or None)
    for number, part in enumerate(parts[n_done:], n_done):
        again.add(held(part), number + 1)
    again.finish({})
    assert_same_folders(tmp_path / "store", tmp_path / "whole")


def test_a_disk_that_is_full_at_the_end_of_a_build_loses_nothing(tmp_path):
    n = 200
    part = [[Message(id=str(number), text="a", labels=[f"label {number}"])] for number in range(n)]
    built(tmp_path / "whole", [part])
    writer = StoreWriter(tmp_path / "store", {"of": "a test"})
    writer.add(held(part), 1)
    # Fewer bytes than needed for the manifest, which is written last.
    with closing(writer.files), limited("RLIMIT_FSIZE", 1000):
        with pytest.raises(OSError):
            writer.finish({})
    assert not (tmp_path / "store").exists()
    again = StoreWriter(tmp_path / "store", {"of": "a test"})
    assert again.next == 1
    again.finish({})
    assert_same_folders(tmp_path / "store", tmp_path / "whole")


def assert_same_folders(first, second):
    contents = [{p.name: p.read_bytes() for p in each.iterdir()} for each in (first, second)]
    assert contents[0] == contents[1]
    assert not first.with_name(f"{first.name}.building").exists()


def test_unfinished_build_of_other_data_is_dropped(tmp_path):
    writer = StoreWriter(tmp_path / "store", {"of": "another test"})
    writer.add(held(EPISODES[:9]), 1)
    writer.files.close()
    again = StoreWriter(tmp_path / "store", {"of": "a test"})
    with closing(again.files):
        assert again.next is None and again.n_rows == 0


@pytest.mark.parametrize("kind", [list, tuple])
def test_contexts_of_lists_are_stored_as_turns(tmp_path, kind):
    """A user's reader may give them as JSON has them."""
    said = [(PARTNER, "hi"), (SELF, "hello")]
    odd = Message(text="b", id="1", context=kind(map(list, said)))
    store = built(tmp_path / "store", [[[Message(text="a", id="0", context=said)], [odd]]])
    assert store.cells("context", np.array([0, 1])) == [said, said]
    turns, n_turns = store.turns(np.array([0, 1]), -1, True)
    assert len(turns) == 6 and n_turns.tolist() == [3, 3]
