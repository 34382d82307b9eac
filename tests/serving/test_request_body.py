"""Whatever the bytes of a request, it gets an answer or a refusal, and never an internal error."""

import asyncio
import json
import random
import time

import pytest

from tests.fuzzing import SECONDS, SEED, TIMES, mangle
from thincdialog.serving import Limits, app

BODIES = {
    "/v1/chat/completions": {
        "model": "barista", "n": 2, "stream": False, "temperature": 0.5,
        "messages": [{"role": "system", "content": "x"}, {"role": "user", "content": "Hi \u00e9"},
                     {"role": "assistant", "content": None},
                     {"role": "user", "content": [{"type": "text", "text": "A latte."}]}],
    },
    "/classify": {"model": "intents", "input": ["warm", {"text": "cold"}]},
    "/v1/rerank": {"model": "barista", "query": "hi", "documents": ["a", "b", "a"], "top_n": 2},
}  # fmt: skip


async def ask(application, path, body):
    """The status and the body of the answer, without a client between."""
    head = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(),
            "query_string": b"", "headers": [], "http_version": "1.1", "root_path": "",
            "scheme": "http", "server": ("x", 80), "asgi": {"version": "3.0"}}  # fmt: skip
    sent = []

    parts = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def receive():
        # The client stays connected until it has its answer.
        return next(parts, None) or await asyncio.Event().wait()

    async def send(message):
        sent.append(message)

    await application(head, receive, send)
    return sent[0]["status"], b"".join(each.get("body", b"") for each in sent)


def mutated(value, draw):
    """Return a JSON value with one part replaced, removed or doubled."""
    if isinstance(value, dict) and value and draw.random() < 0.8:
        name = draw.choice(list(value))
        return {**value, name: mutated(value[name], draw)}
    if isinstance(value, list) and value and draw.random() < 0.7:
        place = draw.randrange(len(value))
        return [*value[:place], mutated(value[place], draw), *value[place:]]
    odd = [None, True, -1, 0, 1e400, 10**30, "", "user", "\ud800", [], {}, [[]], [value], {"a": 1}]
    return draw.choice(odd)


def check_bodies(models, n_bodies, seconds=None):
    """Send mutated and mangled bodies, 50 at once."""
    folders = [models / "barista", models / "intents"]
    application = app(folders, limits=Limits(max_body=50_000))
    draw, begun, seen = random.Random(SEED), time.monotonic(), {}

    async def work():
        for _ in range(n_bodies // 50):
            asked = []
            for _ in range(50):
                path = draw.choice(list(BODIES))
                body = mutated(BODIES[path], draw)
                content = json.dumps(body).encode()
                content = mangle(content, draw) if draw.random() < 0.5 else content
                asked.append(ask(application, path, content))
            for status, content in await asyncio.gather(*asked):
                assert status in (200, 400, 404, 413), (status, content)
                if not content.startswith(b"data: "):
                    json.loads(content)
                seen[status] = seen.get(status, 0) + 1
            if seconds is not None and time.monotonic() - begun > seconds:
                break

    asyncio.run(work())
    return seen


def test_odd_bodies_are_answered_or_refused(models, caplog):
    seen = check_bodies(models, 1000)
    assert seen[200] > 50 and seen[400] > 300 and not caplog.records


@pytest.mark.slow
def test_many_odd_bodies_are_answered_or_refused(models, caplog):
    seen = check_bodies(models, 100_000 * TIMES, SECONDS / 4 * TIMES)
    assert seen[200] > 500 and not caplog.records
