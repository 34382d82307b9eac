"""Damages files as people, disks and editors do. Tests of readers share this.

Slow tests with random draws take a few minutes. To try other cases, and more of them:
``FUZZ_SEED=7 FUZZ_TIMES=10 make test-slow``.
"""

import gc
import gzip
import json
import os
import time
from typing import Callable, Sequence

SEED = int(os.environ.get("FUZZ_SEED", "1"))
TIMES = int(os.environ.get("FUZZ_TIMES", "1"))
# Bytes to insert where they do not belong.
ODD = (
    b"\0", b"\xff", b"\xef\xbb\xbf", b"\xff\xfe", b"\x1f\x8b", b"\xed\xa0\x80", b"\xc3", b"\x85",
    b"\xe2\x80\xa8", b"\r", b"\n", b"\r\n", b"\t", b" ", b"    ", b"\\", b"\\u", b"\\ud83d", b'"',
    b"'", b"[", b"]", b"{", b"}", b"[" * 3000, b'{"a":' * 3000, b"=", b":", b",", b"|", b"#", b";",
    b"$", b"${", b"${a}", b"${paths}", b"${paths.train}", b"@", b"*", b".", b"-", b"-1", b"0",
    b"1e999", b"NaN", b"9" * 400, b"9" * 5000, b"1_0", b"null", b"true", b"{}", b"[]", b"3.5",
    b'""', b'"x"', b"x" * 5000, b"text", b"label", b"labels", b"turns", b"id", b"speaker",
    b"@layers", b"<<: *a", b"&a", b"*a", b"!!python/object:os.system",
)  # fmt: skip
SECONDS = 60.0


def mangle(content: bytes, random) -> bytes:
    """Damage the bytes in one to four ways.

    random (random.Random): Decides how, and where.
    """
    for _ in range(random.randint(1, 4)):
        content = random.choice(_WAYS)(content, random)
    if random.random() < 0.1:
        packed = gzip.compress(content)
        return random.choice([packed, mangle_bytes(packed, random), packed[: len(packed) // 2]])
    return content


def mangle_bytes(content: bytes, random) -> bytes:
    """Damage bytes as disks do: flip bits, or cut off the end."""
    if not content or random.random() < 0.3:
        return content[: random.randrange(len(content) + 1)]
    changed = bytearray(content)
    for _ in range(random.choice([1, 1, 2, 20])):
        changed[random.randrange(len(changed))] ^= 1 << random.randrange(8)
    return bytes(changed)


def _cut(content, random):
    start, end = sorted(random.randrange(len(content) + 1) for _ in range(2))
    return content[:start] + content[end:] if random.random() < 0.5 else content[start:end]


def _insert(content, random):
    place = random.randrange(len(content) + 1)
    return content[:place] + random.choice(ODD) + content[place:]


def _flip(content, random):
    return mangle_bytes(content, random) if content else b"\x80"


def _shuffle_lines(content, random):
    lines = content.split(b"\n")
    first, second = random.randrange(len(lines)), random.randrange(len(lines))
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


def _repeat_line(content, random):
    lines = content.split(b"\n")
    place = random.randrange(len(lines))
    return b"\n".join(lines[:place] + [lines[place]] * random.choice([2, 2, 300]) + lines[place:])


def _replace_token(content, random):
    """Replace the text between two punctuation marks."""
    marks = [n for n, byte in enumerate(content[:100_000]) if byte in b'\n=:,"[]{}\t|. ']
    if len(marks) < 2:
        return _insert(content, random)
    place = random.randrange(len(marks) - 1)
    return content[: marks[place] + 1] + random.choice(ODD) + content[marks[place + 1] :]


def _swap_tokens(content, random):
    parts = content.split(b'"')
    first, second = random.randrange(len(parts)), random.randrange(len(parts))
    parts[first], parts[second] = parts[second], parts[first]
    return b'"'.join(parts)


def _encode(content, random):
    text = content.decode("utf-8", "replace")
    return text.encode(random.choice(["utf-16", "utf-32", "utf-8-sig", "cp037"]), "replace")


def _noise(content, random):
    return bytes(random.randrange(256) for _ in range(random.randrange(60)))


def _nest(content, random):
    depth = random.choice([40, 60, 500, 950, 20_000])
    left, right = random.choice([("[", "]"), ('{"text":', "}"), ('{"turns":[', "]}")])
    value = (left * depth + "1" + right * depth).encode()
    lines = content.split(b"\n")
    place = random.randrange(len(lines))
    head = lines[place].partition(b"=")
    lines[place] = head[0] + head[1] + value if head[1] else value
    return b"\n".join(lines)


def _change_json(content, random):
    """Replace one value in a line of JSON, which stays valid."""
    lines = content.split(b"\n")
    place = random.randrange(len(lines))
    try:
        value = json.loads(lines[place])
    except (ValueError, RecursionError):
        return _replace_token(content, random)
    node, steps = value, 0
    while isinstance(node, (dict, list)) and node and steps < 9:
        key = random.choice(list(node) if isinstance(node, dict) else range(len(node)))
        if random.random() < 0.4 or not isinstance(node[key], (dict, list)):
            node[key] = random.choice([None, 3, -1.5, True, "", "x", "\ud800", [], {}, [[]], [{}]])
            if isinstance(node, dict) and random.random() < 0.3:
                node[random.choice(["turns", "dialog", "text", "labels", "id"])] = node.pop(key)
            break
        node, steps = node[key], steps + 1
    lines[place] = json.dumps(value).encode()
    return b"\n".join(lines)


_WAYS: Sequence[Callable] = (
    _cut, _insert, _insert, _flip, _shuffle_lines, _repeat_line, _replace_token, _replace_token,
    _swap_tokens, _encode, _noise, _nest, _change_json, _change_json,
)  # fmt: skip


def within_time(action: Callable[[], None]) -> None:
    """Run an action that must not take long, whatever its input.

    Damaged files make parsers recurse up to Python's limit. A garbage collection down there would
    finalize objects of other tests, which need frames of their own, and pytest would report that.
    """
    gc.disable()
    start = time.process_time()
    try:
        action()
    finally:
        gc.enable()
    took = time.process_time() - start
    assert took < SECONDS, f"took {took:.1f} s"
