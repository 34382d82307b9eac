"""Measure ``serve``: replies per second, latency, memory and start-up. The server has one core;
this process, which sends the requests, has another one (if there are two). ``serve`` is compared
with fastapi_ranker.py if FastAPI and PyTorch are installed."""

import asyncio
import compileall
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measuring import QUICK, ROOT, SMALL, first_rows, sized

from thincdialog.api import train
from thincdialog.config import load_config, shipped_configs

N_CANDIDATES, N_TURNS = sized(9000, 100), 3
CHAT = "/v1/chat/completions"
CORES = sorted(os.sched_getaffinity(0))


def train_models(folder, names=("ranker", "intent")):
    """Train shipped configs for a few steps: their quality does not matter here."""
    compileall.compile_dir(ROOT / "thincdialog", quiet=1)  # As pip does.
    rows = list(first_rows("self_dialogue/train.jsonl.gz", 4000))
    (folder / "talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    texts = [turn["text"] for row in rows for turn in row["turns"]]
    with open(folder / "intents.jsonl", "w") as file:
        for number, text in enumerate(texts[:20_000]):
            file.write(json.dumps({"text": text, "label": f"class {number % 150}"}) + "\n")
    for name in names:
        config = load_config(shipped_configs()[name]).config
        overrides = {"training.max_steps": sized(20, 2), "training.n_samples": 0, **SMALL}
        if name != "quickstart":
            (task,) = config["tasks"]
            data = "talks" if task == "dialogue" else "intents"
            own = {"train": str(folder / f"{data}.jsonl"), "dev": None, "test": None}
            overrides.update((f"paths.{key}", value) for key, value in own.items())
            overrides[f"tasks.{task}.dev_share"] = 0.05
        if config["agent"]["@agents"] in ("thincdialog.Ranker.v1", "thincdialog.StarSpace.v1"):
            overrides["agent.max_fixed_candidates"] = N_CANDIDATES
        if config["agent"]["@agents"] == "thincdialog.Classifier.v1":
            overrides.update({"agent.reject_class": None, "agent.threshold": 0.0})
        with open(os.devnull, "w") as quiet:
            given = {"overrides": overrides, "stdout": quiet, "stderr": quiet}
            train(shipped_configs()[name], output=folder / name, **given)
    return texts


SERVE = ("-m", "thincdialog", "serve", "--port", "0")
RIVAL = (str(Path(__file__).with_name("fastapi_ranker.py")),)


class Server:
    """A server on the first core."""

    def __init__(self, *words, program=SERVE):
        command = [sys.executable, *program, *map(str, words)]
        self.began = time.perf_counter()
        pin = {"preexec_fn": lambda: os.sched_setaffinity(0, CORES[:1])}
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, cwd=ROOT, **pin)
        line = self.process.stderr.readline()
        if "Serving at" not in line:
            raise SystemExit(line + self.process.stderr.read())
        self.port = int(line.split(" (")[0].rpartition(":")[2])

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.process.terminate()
        self.process.communicate()

    def megabytes(self):
        """Return the memory of the server."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def post(stream, path, body):
    """Ask; gives the JSON of the answer."""
    reader, writer = stream
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {len(content)}\r\n\r\n"
    writer.write(head.encode() + content)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    size = int(head.partition(b"content-length: ")[2].split(b"\r")[0])
    answer = await reader.readexactly(size)
    assert head.startswith(b"http/1.1 200"), answer
    return json.loads(answer)


async def at_once(server, works):
    """Seconds of each request, and of all; each work gets a connection, and gives its seconds."""
    streams = []
    for _ in works:
        streams.append(await asyncio.open_connection("127.0.0.1", server.port))
    began = time.perf_counter()
    found = await asyncio.gather(*(work(stream) for work, stream in zip(works, streams)))
    seconds = time.perf_counter() - began
    for _, writer in streams:
        writer.close()
    return [each for some in found for each in some], seconds


def talking(texts):
    """A conversation of several turns. Each request includes the server's earlier replies."""

    async def work(stream):
        messages, seconds = [], []
        for text in texts:
            messages.append({"role": "user", "content": text})
            began = time.perf_counter()
            answer = await post(stream, CHAT, {"messages": messages})
            seconds.append(time.perf_counter() - began)
            messages.append(answer["choices"][0]["message"])
        return seconds

    return work


def asking(path, bodies):
    async def work(stream):
        seconds = []
        for body in bodies:
            began = time.perf_counter()
            await post(stream, path, body)
            seconds.append(time.perf_counter() - began)
        return seconds

    return work


def shown(name, seconds, whole, server, before):
    p50, p99 = np.percentile(seconds, [50, 99]) * 1000
    cpu = 1000 * (server.cpu_seconds() - before) / len(seconds)
    print(f"{name:<34}{len(seconds) / whole:>10,.0f}/s  p50 {p50:>8,.1f} ms  p99 {p99:>8,.1f} ms"
          f"  CPU {cpu:.2f} ms each", flush=True)  # fmt: skip
    return len(seconds) / whole


def measure(name, server, works):
    before = server.cpu_seconds()
    return shown(name, *asyncio.run(at_once(server, works)), server, before)


def main():
    folder = Path(tempfile.mkdtemp())
    texts = train_models(folder)
    os.sched_setaffinity(0, CORES[-1:])
    n_talks = sized(1000, 20)
    talks = [texts[n * N_TURNS : (n + 1) * N_TURNS] for n in range(n_talks)]
    label = f"{n_talks:,} conversations"
    with Server(folder / "ranker") as server:
        asyncio.run(at_once(server, [talking(texts[:1])]))
        print(f"start to first answer: {time.perf_counter() - server.began:.2f} s")
        bodies = [{"messages": [{"role": "user", "content": text}]} for text in texts]
        measure("idle, one after the other", server, [asking(CHAT, bodies[: sized(500, 9)])])
        rate = measure(f"{label}, serve", server, list(map(talking, talks)))
        print(f"memory of the ranker: {server.megabytes():.0f} MB")
    rivals = {"--max-batch 1": ((folder / "ranker", "--max-batch", "1"), SERVE)}
    if QUICK:
        rivals = {}
    elif all(map(importlib.util.find_spec, ("fastapi", "torch"))):
        state = json.loads((folder / "ranker" / "model-best" / "agent.json").read_text())
        (folder / "replies.json").write_text(json.dumps(state["fixed_candidates"]))
        rivals["FastAPI and PyTorch"] = (folder / "replies.json",), RIVAL
    else:
        print("no comparison with FastAPI and PyTorch: pip install fastapi torch")
    for name, (words, program) in rivals.items():
        with Server(*words, program=program) as server:
            asyncio.run(at_once(server, [talking(texts[:1])]))
            ratio = rate / measure(f"{label}, {name}", server, list(map(talking, talks)))
            print(f"serve to {name}: {ratio:.2f} times as many replies a second")
    with Server(folder / "intent") as server:
        n_each = sized(20_000 // 64, 3)

        def works(part):
            """Each of 64 clients sends single texts, all of them new."""
            for n in range(64):
                places = range((part * 64 + n) * n_each, (part * 64 + n + 1) * n_each)
                said = [f"{texts[place % len(texts)]} {place}" for place in places]
                yield asking("/classify", [{"input": text} for text in said])

        sizes = []
        # Distinct texts, so that the memory of caches of texts counts, too.
        for part in range(sized(10, 2)):
            measure("classifier, 64 single texts at once", server, list(works(part)))
            sizes.append(f"{server.megabytes():.0f}")
        print(f"memory after each {64 * n_each:,} of these requests: {', '.join(sizes)} MB")


if __name__ == "__main__":
    main()
