"""Checksums that show whether another process, on this machine or another, reads the same data."""

import hashlib
from itertools import islice
from typing import Dict, Iterator

from ..files.fingerprint import fingerprint
from ..teachers import Teacher

# Number of texts that are hashed at once.
CHUNK = 4096
# Number of episodes of a stream that are compared. More are not needed: if the order differs
# between processes, for example because a reader iterates over a set, it differs from the start.
N_FIRST = 256


def data_prints(teacher: Teacher) -> Dict[str, str]:
    """Return a checksum of each task's data, which depends on the order of the examples in this
    process. The checksum of a stream covers its first episodes and the ``fingerprint`` of its
    files.

    teacher (Teacher): Teacher of a split of the data.
    RETURNS (Dict[str, str]): Task name to checksum.
    """
    return {name: _checksum_of(task) for name, task in teacher.by_task().items()}


def _checksum_of(task: Teacher) -> str:
    """Return the checksum of one task's data."""
    store = task.data[task.split].built_store
    if store is not None:
        return store.checksum
    if task.data[task.split].streaming:
        found, texts = hashlib.sha256(), _first_texts(task)
    else:
        found = hashlib.sha256(f"{task.n_episodes} {task.n_examples}".encode())
        texts = task.texts()
    while chunk := list(islice(texts, CHUNK)):
        found.update("\0".join(["", *chunk]).encode("utf8", "surrogatepass"))
    return found.hexdigest()


def _first_texts(task: Teacher) -> Iterator[str]:
    for episode in islice(task.data[task.split].episodes(), N_FIRST):
        for message in episode:
            yield message.get("text") or ""
            yield from message.get("labels") or ()
        yield ""
    for path in task.files(task.split):
        yield " ".join(map(str, fingerprint(path)))
