"""The vocabulary of a model: its tokens, the most frequent first."""

import json
import zlib
from collections import Counter
from pathlib import Path
from typing import Callable, Iterable, Iterator, List, Optional, Sequence, Tuple

from ..errors import DataError, ModelError
from ..files.json_text import parse_json
from ..files.plain_file import read_plain

Progress = Callable[[int], None]
_PROGRESS_EVERY = 1000  # texts


class Vocabulary:
    """Hold tokens and their counts, ordered by (-count, token).

    rows (Sequence[Tuple[str, int]]): Each token with its count, in this order.
    """

    def __init__(self, rows: Sequence[Tuple[str, int]]):
        self.tokens: List[str] = [token for token, _ in rows]
        self.counts: List[int] = [count for _, count in rows]

    def __len__(self) -> int:
        return len(self.tokens)

    @classmethod
    def build(
        cls,
        texts: Iterable[str],
        split: Callable[[str], List[str]],
        *,
        min_freq: int = 1,
        max_size: int = 0,
        progress: Optional[Progress] = None,
    ) -> "Vocabulary":
        """Build a vocabulary from the tokens of all texts.

        texts (Iterable[str]): Texts, read once.
        split (Callable): Cuts a text into tokens.
        min_freq (int): Minimum count of a token to keep, 1 or more.
        max_size (int): Maximum number of tokens, the most frequent ones; 0 for no limit.
        progress (Optional[Callable]): Called with the number of texts read so far.
        RAISES (DataError): If no token occurs often enough.
        """
        counter: Counter = Counter()
        for text in counted(texts, progress):
            counter.update(split(text))
        rows = [(token, count) for token, count in counter.items() if count >= min_freq]
        if not rows:
            most = max(counter.values(), default=0)
            raise DataError(
                "[tokenizer]",
                f"the vocabulary would be empty: the texts have {len(counter)} different "
                f"tokens, the most frequent {most} times, and min_freq is {min_freq}",
            )
        rows.sort(key=lambda row: (-row[1], row[0]))
        return cls(rows[:max_size] if max_size else rows)

    def to_disk(self, path: Path) -> None:
        """Write the vocabulary to a file: a line with the number of tokens and a checksum (CRC-32),
        then for each token a line ``["token", count]`` of JSON."""
        lines = [
            json.dumps([token, count], ensure_ascii=False)
            for token, count in zip(self.tokens, self.counts)
        ]
        # Lone surrogates, which UTF-8 cannot represent, are written as JSON escapes: \udXXX.
        body = "\n".join([*lines, ""]).encode("utf-8", "backslashreplace")
        head = json.dumps({"tokens": len(lines), "crc32": zlib.crc32(body)})
        path.write_bytes(head.encode("ascii") + b"\n" + body)

    @classmethod
    def from_disk(cls, path: Path) -> "Vocabulary":
        """Read a vocabulary that ``to_disk`` wrote.

        RAISES (ModelError): If the file is missing, truncated, changed or not a vocabulary.
        """
        try:
            head, _, body = read_plain(path).partition(b"\n")
        except OSError as error:
            raise ModelError(f"{path}: cannot read the vocabulary ({error.strerror})") from None
        try:
            expected = parse_json(head)
            intact = expected["crc32"] == zlib.crc32(body)
            rows = [_row(line) for line in body.split(b"\n")[:-1]] if intact else []
            intact = intact and expected["tokens"] == len(rows)
        except (ValueError, KeyError, TypeError):
            intact = False
        if not intact:
            raise ModelError(
                f"{path}: this vocabulary is damaged or was changed since it was saved; "
                "train again or restore the file"
            )
        return cls(rows)


def _row(line: bytes) -> Tuple[str, int]:
    token, count = parse_json(line)
    if not isinstance(token, str) or type(count) is not int:
        raise TypeError("no token and its count")
    return token, count


def counted(texts: Iterable[str], progress: Optional[Progress]) -> Iterator[str]:
    """Yield the texts, and report their number to ``progress`` every 1,000 texts and at the end."""
    if progress is None:
        yield from texts
        return
    n_texts = 0
    for n_texts, text in enumerate(texts, 1):
        yield text
        if n_texts % _PROGRESS_EVERY == 0:
            progress(n_texts)
    progress(n_texts)
