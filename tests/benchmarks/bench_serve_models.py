"""Measure the table of docs/serving.md: for each model, the start-up of ``serve``, its memory, and
the latency of requests that are sent one after the other. The rankers choose among 9,000
replies."""

import asyncio
import os
import tempfile
import time
from pathlib import Path

import numpy as np
from bench_serve import CHAT, CORES, Server, asking, at_once, train_models
from measuring import sized

from thincdialog.cli.output import table

NAMES = sized(
    ("intent", "multi_label", "fasttext", "quickstart", "ranker", "starspace", "polyencoder",
     "transformer_ranker"),
    ("fasttext",),
)  # fmt: skip


def main():
    folder = Path(tempfile.mkdtemp())
    texts = train_models(folder, NAMES)
    os.sched_setaffinity(0, CORES[-1:])
    bodies = [{"messages": [{"role": "user", "content": text}]} for text in texts]
    rows = [["model", "start, s", "MB", "p50, ms", "p99, ms"]]
    for name in NAMES:
        with Server(folder / name) as server:
            asyncio.run(at_once(server, [asking(CHAT, bodies[:1])]))
            start = time.perf_counter() - server.began
            works = [asking(CHAT, bodies[1 : sized(300, 9)])]
            seconds, _ = asyncio.run(at_once(server, works))
            figures = (start, server.megabytes(), *np.percentile(seconds, [50, 99]) * 1000)
        digits = (1, 0, 1, 1)
        rows.append([name, *(f"{each:.{n}f}" for each, n in zip(figures, digits))])
    print(table(rows))


if __name__ == "__main__":
    main()
