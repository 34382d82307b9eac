"""A log of conversations, one line per reply, from which models can be trained again."""

import errno
import hashlib
import json
import os
from pathlib import Path
from typing import Any, Dict, Iterator, List, Sequence, Set, Tuple, Union

from ..errors import DataError
from ..files.json_file import as_json
from ..files.whole_file import writing
from ..messages import SELF, Turn
from .context import BadData, Bookmark
from .output_file import open_output
from .text_file import read_json_lines


class ChatLog:
    """Append conversations to a file. Several processes can write to the same file, because each
    line is written at once.

    path (Union[str, Path]): The file; created if it does not exist.
    RAISES (OutputError): If the file cannot be written.
    """

    def __init__(self, path: Union[str, Path]):
        self.path = Path(path)
        with writing(self.path):
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._is_torn = False

    def add(self, turns: Sequence[Turn], reply: str) -> None:
        """Append a conversation and the reply to it.

        RAISES (OutputError): If the line cannot be written, because the disk is full, for example.
        """
        said = [*turns, (SELF, reply)]
        messages = [{"role": ("user", "assistant")[side], "content": text} for side, text in said]
        chat = {"id": next(_digests(messages))[:16], "messages": messages}
        data = ("\n" * self._is_torn + as_json(chat) + "\n").encode("utf8")
        with writing(self.path):
            # A single call, so that lines of several processes do not mix.
            self._is_torn = os.write(self._file, data) < len(data)
            if self._is_torn:
                raise OSError(errno.ENOSPC, "only a part of the line was written")


def keep_longest(source: str, target: str, force: bool = False) -> Tuple[int, int, int]:
    """Write each conversation of a log once, in its longest form. A line is left out if another
    line continues it or is equal to it. Incomplete lines are left out, too.

    source (str): The log.
    target (str): The file to write; gzip-compressed if its name ends in .gz.
    force (bool): Whether an existing target may be replaced.
    RETURNS (Tuple[int, int, int]): Number of complete lines in the log, of lines written, and of
        incomplete lines.
    RAISES (DataError): If the log cannot be read, or has no complete line.
    RAISES (OutputError): If the target exists and must not be replaced, or cannot be written.
    """
    done: Set[str] = set()
    bad = BadData(source)
    n_read = n_kept = 0
    for _, digests in _chats(source, bad):
        n_read += 1
        done.update(digests[:-1])
    if bad.first and not n_read:
        raise bad.first[0]
    with open_output(target, force, [source]) as write:
        for line, digests in _chats(source, BadData(source)):
            if digests[-1] not in done:
                done.add(digests[-1])
                write(line)
                n_kept += 1
    return n_read, n_kept, bad.n_skipped


def _chats(source: str, bad: BadData) -> Iterator[Tuple[str, List[str]]]:
    """Yield each complete line of a log with the digests of its messages (see ``_digests``)."""
    at = Bookmark()
    at.bad = bad
    for _, chat in read_json_lines(source, at):
        messages = chat.get("messages")
        if not isinstance(messages, list) or not all(isinstance(each, dict) for each in messages):
            raise DataError(source, "is not a log of conversations: a line has no 'messages'")
        yield as_json(chat), list(_digests(messages))


def _digests(messages: Sequence[Dict[str, Any]]) -> Iterator[str]:
    """Yield a digest of the first message, of the first two messages, and so on; without messages,
    a single digest."""
    whole = hashlib.sha256()
    for message in messages or [{}]:
        whole.update(json.dumps(message).encode())
        yield whole.hexdigest()
