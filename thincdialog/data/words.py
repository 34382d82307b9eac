"""Split texts in any script into words and punctuation marks, with the standard library alone.

A word is a run of letters, digits and underscores, with all their combining marks. An apostrophe
between letters does not end a word, nor does a full stop or comma between digits (``don't``,
``1,000.5``). Every other character except white space is a token of its own; an emoji is one token
with its modifiers and joined parts. In scripts without spaces between words (Han, kana, Thai, Lao,
Khmer, Myanmar), each character with its marks is a token, so that no dictionary is needed.

SOURCE: based on Unicode Standard Annex 29, https://unicode.org/reports/tr29/
"""

import re
import unicodedata
from functools import lru_cache
from itertools import groupby
from typing import Iterable, List, Literal, Pattern

NormalForm = Literal["NFC", "NFKC", "none"]

# Scripts without spaces between words, as ranges of code points.
_UNSPACED = (
    (0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF), (0x3005, 0x3007), (0x3041, 0x312F),
    (0x31F0, 0x31FF), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xA9E0, 0xA9FF), (0xAA60, 0xAA7F),
    (0xF900, 0xFAFF), (0xFF66, 0xFF9F),
)  # fmt: skip
_LETTERS_END = 0x20000  # From this code point on, all letters are Han.
_JOINER = "\u200d"
# Soft hyphen, non-joiner, skin tones, tags (flags of regions), variation selectors.
_EXTENDERS = "\u00ad\u200c\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f\U000e0100-\U000e01ef"
# Zero width space, direction marks, word joiner, byte order mark: they separate words and are
# dropped.
_DROPPED = "\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff"
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
_ASCII = re.compile(r"\w+(?:(?:'|(?<=\d)[.,](?=\d))\w+)*|[^\s\w]")

_CLOSING = frozenset(".,!?;:)]}%…，。！？；：、）】」』》”’")
# Full-width marks include the width of a space, so no space follows them.
_OPENING = frozenset("([{$£€#@“‘（【「『《，。！？；：、）】」』》")


def split_words(text: str) -> List[str]:
    """Return the words and punctuation marks of a text, in order."""
    return (_ASCII if text.isascii() else any_script()).findall(text)


def join_words(words: Iterable[str]) -> str:
    """Join words and punctuation marks into a readable text. ``split_words`` splits this text into
    the same words again."""
    parts: List[str] = []
    previous = ""
    for word in words:
        attached = (
            not previous
            or word in _CLOSING
            or (previous in _OPENING and word[:1].isalnum())
            or (_is_unspaced(previous) and _is_unspaced(word))
        )
        parts.append(word if attached else f" {word}")
        previous = word
    return "".join(parts)


def normalise(text: str, form: NormalForm, lower: bool) -> str:
    """Return a text in a normal form of Unicode, and in lower case if wanted.

    form (str): "NFC" (composed characters), "NFKC" (in addition, compatible characters such as
        full-width letters and ligatures are replaced by the usual ones) or "none".
    lower (bool): Whether to put everything into lower case.
    """
    if text.isascii():
        return text.lower() if lower else text
    if form != "none":
        text = unicodedata.normalize(form, text)
    if lower:
        text = text.lower()
        if form != "none":
            text = unicodedata.normalize(form, text)
    return text


def _is_unspaced(word: str) -> bool:
    point = ord(word[0])
    return point >= 0x0E00 and word[0].isalnum() and _lacks_spaces(point)


def _lacks_spaces(point: int) -> bool:
    return point >= _LETTERS_END or any(first <= point <= last for first, last in _UNSPACED)


@lru_cache(maxsize=None)
def any_script() -> Pattern[str]:
    """Return the pattern of a word in any script. It is built at the first call, in about 50 ms."""
    letters, marks = [], []
    unspaced = {point for first, last in _UNSPACED for point in range(first, last + 1)}
    for point in range(0x80, _LETTERS_END):
        char = chr(point)
        if char.isalnum():
            if point not in unspaced:
                letters.append(point)
        elif unicodedata.category(char)[0] == "M":
            marks.append(point)
    letter = "A-Za-z0-9_" + _ranges(letters)
    extender = _ranges(marks) + _EXTENDERS
    rest = f"[{letter}{extender}{_JOINER}]*"
    other = f"[^\\s{_DROPPED}]"
    return re.compile(
        f"[{letter}]{rest}(?:(?:['’]|(?<=\\d)[.,](?=\\d))[{letter}]{rest})*"
        f"|{_FLAG}|{other}[{extender}]*(?:{_JOINER}{other}[{extender}]*)*"
    )


def _ranges(points: List[int]) -> str:
    """Return ascending code points as ranges of a character class in a regular expression."""
    runs = (list(run) for _, run in groupby(enumerate(points), lambda pair: pair[1] - pair[0]))
    return "".join(f"{chr(run[0][1])}-{chr(run[-1][1])}" for run in runs)
