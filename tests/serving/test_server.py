"""The command ``serve``: third-party clients, signals, workers, and errors that are one line."""

import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Event

import httpx
import openai
import pytest

from tests.processes import slow
from tests.serving.running import serving
from thincdialog.api import load
from thincdialog.cli.main import main

CHAT = "/v1/chat/completions"
BODY = {"messages": [{"role": "user", "content": "Good morning!"}]}


@pytest.fixture(scope="module")
def server(models, tmp_path_factory):
    keys = tmp_path_factory.mktemp("keys") / "keys.txt"
    keys.write_text("sesame\n")
    options = ("--api-key-file", keys, "--max-characters", "5000", "--max-seconds", "3")
    with serving(models / "barista", models / "intents", *options) as found:
        yield found


def test_the_client_of_openai(server, models):
    given = {"base_url": f"{server.url}/v1", "max_retries": 0}
    with openai.OpenAI(api_key="sesame", **given) as client:
        assert [model.id for model in client.models.list()] == ["barista", "intents"]
        said = [{"role": "system", "content": "Be brief."}, *BODY["messages"]]
        (expected,) = load(models / "barista").respond_to_all(["Good morning!"], top=2)
        ask = client.chat.completions.create
        found = ask(model="barista", messages=said, n=2, temperature=0)
        assert [each.message.content for each in found.choices] == [a.text for a in expected]
        assert found.choices[0].score == expected[0].probability
        assert found.usage.total_tokens > found.usage.prompt_tokens == 2
        options = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = list(ask(model="barista", messages=said, **options))
        text = "".join(each.choices[0].delta.content or "" for each in chunks if each.choices)
        assert text == expected[0].text and chunks[-1].usage.prompt_tokens == 2
        for error, wrong in {
            openai.NotFoundError: {"model": "other", "messages": said},
            openai.BadRequestError: {"model": "barista", "messages": []},
        }.items():
            with pytest.raises(error) as refused:
                ask(**wrong)
            assert refused.value.param in ("model", "messages")
        with pytest.raises(openai.APIStatusError) as refused:
            ask(model="barista", messages=[{"role": "user", "content": "x" * 5001}])
        assert refused.value.status_code == 413
    with openai.OpenAI(api_key="other", **given) as client:
        with pytest.raises(openai.AuthenticationError, match="Give a key"):
            client.models.list()


# Requests as gr.load_chat of Gradio 6 and Open WebUI 0.6 send them.
GRADIO = {
    "model": "barista", "stream": True,
    "messages": [
        {"role": "user", "metadata": None, "content": [{"text": "Hi!", "type": "text"}],
         "options": None},
        {"role": "assistant", "metadata": None, "content": [{"text": "Hello.", "type": "text"}],
         "options": None},
        {"role": "user", "content": [{"type": "text", "text": "A latte, please."}]},
    ],
}  # fmt: skip
OPEN_WEBUI = {
    "stream": True, "model": "barista", "params": {}, "features": {"web_search": False},
    "messages": [{"role": "user", "content": [{"type": "text", "text": "A latte, please."}]}],
    "stream_options": {"include_usage": True}, "tool_ids": None, "files": None,
    "metadata": {"chat_id": "local", "message_id": "m", "session_id": "s"},
}  # fmt: skip


@pytest.mark.parametrize("body", [GRADIO, OPEN_WEBUI], ids=["gradio", "open-webui"])
def test_requests_of_chat_programs(server, body):
    headers = {"Authorization": "Bearer sesame"}
    with httpx.Client(base_url=server.url, headers=headers) as client:
        with client.stream("POST", CHAT, json=body) as response:
            lines = [line for line in response.iter_lines() if line]
    assert response.status_code == 200 and lines[-1] == "data: [DONE]" and len(lines) >= 3


def test_clients_that_vanish_and_slow_ones_do_not_block_others(server):
    host, port = server.url.removeprefix("http://").split(":")
    idle, part = [], f"POST {CHAT} HTTP/1.1\r\nHost: x\r\nContent-Length: 99\r\n\r\n[".encode()
    for sent in (b"", b"POST ", part) * 20:
        client = socket.create_connection((host, int(port)))
        client.sendall(sent)
        idle.append(client)
    headers = {"Authorization": "Bearer sesame"}
    body = {**BODY, "model": "barista"}
    for client in idle[::2]:
        client.close()
    with httpx.Client(base_url=server.url, headers=headers) as client:
        assert client.post(CHAT, json=body).status_code == 200
    for client in idle[1::2]:
        client.close()


@pytest.mark.slow
def test_heads_that_are_long_or_slow_end_the_connection(server):
    host, port = server.url.removeprefix("http://").split(":")

    def sent(parts):
        """Return the server's response until it closes the connection. There is a pause after each
        part."""
        with socket.create_connection((host, int(port)), timeout=20) as client:
            for part in parts:
                client.sendall(part)
                time.sleep(0.3)
            return client.makefile("rb").read()

    head = b"GET /healthz HTTP/1.1\r\nHost: x\r\n"
    close, long = b"Connection: close\r\n\r\n", b"A: " + b"a" * 50_000
    # A client that has been answered may take its time for another request.
    several = (head + b"\r\n", head, long + b"\r\n", close)
    with ThreadPoolExecutor(4) as threads:
        tried = ((b"",), (head,), several, (head, long, long))
        nothing, half, twice, longer = threads.map(sent, tried)
    assert nothing == half == b""
    assert twice.count(b"200 OK") == 2 and b"400 Bad Request" in longer
    assert httpx.get(f"{server.url}/healthz").json() == {"status": "ok"}


def loopback():
    """Return the IPv6 address of this machine, if it has one."""
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        return "127.0.0.1"
    return "::1"


@pytest.mark.parametrize("number", [slow(signal.SIGTERM), slow(signal.SIGINT)])
def test_a_signal_lets_waiting_requests_finish_and_exits_with_0(models, number, tmp_path):
    code, host = tmp_path / "slow.py", loopback()
    code.write_text(
        "import time\nfrom thincdialog.training.trained_model import TrainedModel\n"
        "act = TrainedModel.act\n"
        "def slow(*given):\n    time.sleep(0.5)\n    return act(*given)\n"
        "TrainedModel.act = slow\n"
    )
    options = ("--code", code, "--host", host)
    with serving(models / "barista", *options) as server, ThreadPoolExecutor(3) as threads:
        assert server.url.startswith("http://[::1]:" if ":" in host else "http://127.0.0.1:")
        asked = [threads.submit(httpx.post, server.url + CHAT, json=BODY) for _ in range(3)]
        time.sleep(0.3)
        ended = threads.submit(server.end, number)
        assert [each.result().status_code for each in asked] == [200] * 3
        assert ended.result()[0] == 0 and "Traceback" not in ended.result()[1]


@pytest.mark.slow
@pytest.mark.parametrize("n_workers", ["1", "2"])
def test_a_signal_at_the_very_start_ends_it(models, n_workers):
    with serving(models / "barista", "--workers", n_workers) as server:
        assert server.end() == (0, "")


def children(pid):
    found = []
    for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        with suppress(FileNotFoundError, ProcessLookupError):  # It may end meanwhile.
            if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes():
                found.append(int(each))
    return found


@contextmanager
def asking_all_the_time(url, threads):
    """Send requests from each thread. Yield the list of statuses so far, with "lost" for no
    answer."""
    found, is_over = [], Event()

    def ask():
        with httpx.Client(timeout=60, headers={"Connection": "close"}) as client:
            while not is_over.wait(0.1):  # A worker that starts needs the processor, too.
                try:
                    found.append(client.post(url + CHAT, json=BODY).status_code)
                except httpx.TransportError:
                    found.append("lost")

    asking = [threads.submit(ask) for _ in range(8)]
    try:
        yield found
    finally:
        is_over.set()
    for each in asking:
        each.result()


@pytest.mark.slow
def test_workers_count_together_and_one_that_is_killed_is_replaced(models, tmp_path, monkeypatch):
    log = tmp_path / "log.jsonl"
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with serving(models / "barista", "--workers", "2", "--log", log) as server:
        transport = httpx.HTTPTransport(retries=3)
        with httpx.Client(base_url=server.url, timeout=60, transport=transport) as client:

            def ask(times):
                for _ in range(times):
                    headers = {"Connection": "close"}
                    assert client.post(CHAT, json=BODY, headers=headers).status_code == 200

            def counted():
                line = f'thincdialog_requests_total{{path="{CHAT}",status="200"}} '
                lines = client.get("/metrics").text.splitlines()
                return sum(float(each[len(line) :]) for each in lines if each.startswith(line))

            n_asked = 0
            # When both workers have counted an answer, both have loaded their models.
            while len(list(tmp_path.glob("*/histogram_*.db"))) < 2:
                ask(10)
                n_asked += 10
            assert counted() == n_asked
            first = children(server.process.pid)
            assert len(first) == 2
            with (
                ThreadPoolExecutor(8) as threads,
                asking_all_the_time(server.url, threads) as found,
            ):
                while len(found) < 100:
                    time.sleep(0.01)
                os.kill(first[0], signal.SIGKILL)
                began = time.monotonic()
                while first[0] in (now := children(server.process.pid)) or len(now) < 2:
                    assert time.monotonic() - began < 90
                    time.sleep(0.1)
                n_found = len(found)
                while len(found) < n_found + 100:
                    time.sleep(0.01)
            # Each client had at most one request at the worker that was killed.
            lost = [each for each in found if each != 200]
            assert len(lost) <= 8 and set(lost) <= {"lost"}, lost
            n_answered = n_asked + len(found) - len(lost)
            assert n_answered <= counted() <= n_answered + len(lost)
            n_logged = len(log.read_text().splitlines())
            assert n_answered <= n_logged <= n_answered + len(lost)
        code, err = server.end()
        assert code == 0 and "Traceback" not in err


@pytest.mark.slow
def test_workers_that_start_slowly_are_waited_for(models, tmp_path, monkeypatch):
    (tmp_path / "sitecustomize.py").write_text(
        "import os, sys, time\n"
        "if any('spawn_main' in word for word in sys.orig_argv):\n"
        f"    open({str(tmp_path)!r} + f'/{{os.getpid()}}', 'w').close()\n"
        "    time.sleep(8)\n"
    )
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with serving(models / "barista", "--workers", "2") as server:
        assert httpx.post(server.url + CHAT, json=BODY, timeout=60).status_code == 200
        time.sleep(4)
        started = {int(path.name) for path in tmp_path.iterdir() if path.name.isdigit()}
        assert started == set(children(server.process.pid)) and len(started) == 2


def test_serve_commands_that_cannot_work_end_in_one_line(models, tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        for words, code, text in (
            ([models / "barista", "--port", port], 1, f"Cannot listen on 127.0.0.1:{port}: "),
            ([models / "barista", "--port", "65536"], 2, "--port: should be an integer from 0 to"),
            ([tmp_path / "nothing", "--port", "0"], 1, "is not a folder"),
            ([models / "barista", models / "barista", "--port", "0"], 1, "the name 'barista'"),
            ([models / "barista", "--api-key-file", tmp_path / "no"], 1, "file not found"),
            ([models / "barista", "--max-waiting", "0"], 2, "should be an integer, 1 or more"),
        ):
            try:
                found = main(["serve", *map(str, words)])
            except SystemExit as ended:
                found = ended.code
            err = capsys.readouterr().err
            assert found == code and text in err and "Traceback" not in err, err
