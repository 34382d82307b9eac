"""Replies a second of ``serve``, latency, memory and start. The server has one core, this process,
which makes the load, another one (if there are two)."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from measuring import ROOT, first_rows, sized

from thincdialog.api import train
from thincdialog.config import shipped_configs

N_CANDIDATES, N_TURNS = sized(9000, 100), 3
CHAT = "/v1/chat/completions"
CORES = sorted(os.sched_getaffinity(0))


def train_models(folder):
    """A ranker and a classifier, trained for some steps: how good they are does not matter."""
    rows = list(first_rows("self_dialogue/train.jsonl.gz", 4000))
    (folder / "talks.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    texts = [turn["text"] for row in rows for turn in row["turns"]]
    with open(folder / "intents.jsonl", "w") as file:
        for number, text in enumerate(texts[:20_000]):
            file.write(json.dumps({"text": text, "label": f"class {number % 150}"}) + "\n")
    common = {"training.max_steps": sized(20, 2), "training.n_samples": 0}
    for name, more in {
        "ranker": {"paths.train": str(folder / "talks.jsonl"), "tasks.dialogue.dev_share": 0.05,
                   "agent.max_fixed_candidates": N_CANDIDATES},
        "intent": {"paths.train": str(folder / "intents.jsonl"), "tasks.intent.dev_share": 0.05,
                   "agent.reject_class": None, "agent.threshold": 0.0},
    }.items():  # fmt: skip
        quiet = open(os.devnull, "w")
        overrides = {"paths.dev": None, "paths.test": None, **common, **more}
        config = shipped_configs()[name]
        train(config, output=folder / name, overrides=overrides, stdout=quiet, stderr=quiet)
    return texts


class Server:
    """A server on the first core."""

    def __init__(self, *words):
        command = [sys.executable, "-m", "thincdialog", "serve", "--port", "0", *map(str, words)]
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
        """Memory of the server."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmRSS:")[2].split()[0]) / 1024

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def post(stream, path, body):
    """Ask; gives the JSON of the answer."""
    reader, writer = stream
    content = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {len(content)}\r\n\r\n"
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
    """A conversation of several turns, each with what the server has said."""

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
    rates = {}
    for name, words in {"batches": (), "--max-batch 1": ("--max-batch", "1")}.items():
        with Server(folder / "ranker", *words) as server:
            asyncio.run(at_once(server, [talking(texts[:1])]))
            if not words:
                print(f"start to first answer: {time.perf_counter() - server.began:.2f} s")
                bodies = [{"messages": [{"role": "user", "content": text}]} for text in texts]
                measure(
                    "idle, one after the other", server, [asking(CHAT, bodies[: sized(500, 9)])]
                )
            label = f"{n_talks:,} conversations, {name}"
            rates[name] = measure(label, server, list(map(talking, talks)))
            if not words:
                n_each = sized(200_000 // 64, 5)
                sizes = []
                for part in range(4):
                    some = [bodies[(n * 31 + part) % 5000 :][: n_each // 4] for n in range(64)]
                    asyncio.run(at_once(server, [asking(CHAT, each) for each in some]))
                    sizes.append(f"{server.megabytes():.0f}")
                total = 4 * 64 * (n_each // 4)
                print(f"memory over {total:,} requests: {', '.join(sizes)} MB")
    print(
        f"batches to --max-batch 1: {rates['batches'] / rates['--max-batch 1']:.2f} times as fast"
    )
    with Server(folder / "intent") as server:
        bodies = [{"input": text} for text in texts]
        n_each = sized(200, 3)
        works = [asking("/classify", bodies[n * n_each :][:n_each]) for n in range(64)]
        measure("classifier, 64 single texts at once", server, works)
        measure("classifier, again", server, works)
        print(f"memory of the classifier: {server.megabytes():.0f} MB")


if __name__ == "__main__":
    main()
