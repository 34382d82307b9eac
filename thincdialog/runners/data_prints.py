"""Checksums that show whether another process, here or on another machine, reads the same data."""

import hashlib
from itertools import islice
from typing import Dict, Iterator

from ..files.fingerprint import fingerprint
from ..teachers import Teacher

# Texts that are hashed at once.
CHUNK = 4096
# Episodes of a stream that are compared. These are enough: if the order differs between processes
# (as of a set of texts), it differs from the beginning.
N_FIRST = 256


def data_prints(teacher: Teacher) -> Dict[str, str]:
    """Return a checksum of each task's data, in the order in which this process has read it; of a
    stream, the checksum of its first episodes and its files (see ``fingerprint``).

    teacher (Teacher): Teacher of a split of the data.
    RETURNS (Dict[str, str]): Task to checksum.
    """
    return {name: _print_of(task) for name, task in teacher.by_task().items()}


def _print_of(task: Teacher) -> str:
    store = task.data[task.split].built_store
    if store is not None:
        return store.checksum
    if task.data[task.split].streaming:
        found, texts = hashlib.sha256(), _begin_of_stream(task)
    else:
        found = hashlib.sha256(f"{task.n_episodes} {task.n_examples}".encode())
        texts = task.texts()
    while chunk := list(islice(texts, CHUNK)):
        found.update("\0".join(["", *chunk]).encode("utf8", "surrogatepass"))
    return found.hexdigest()


def _begin_of_stream(task: Teacher) -> Iterator[str]:
    for episode in islice(task.data[task.split].episodes(), N_FIRST):
        for message in episode:
            yield message.get("text") or ""
            yield from message.get("labels") or ()
        yield ""
    for path in task.files(task.split):
        yield " ".join(map(str, fingerprint(path)))
