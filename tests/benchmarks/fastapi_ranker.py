"""Serve the ranker of configs/ranker.cfg in PyTorch with FastAPI, as a colleague would write it.
bench_serve.py compares ``serve`` with it. The weights are random: they take the same time.

    python tests/benchmarks/fastapi_ranker.py CANDIDATES.json
"""

import json
import re
import socket
import sys
import zlib
from typing import List

import torch
import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from torch import nn
from torch.nn import functional

N_ROWS, WIDTH, HISTORY = 65544, 256, 3


class Message(BaseModel):
    role: str
    content: str


class Conversation(BaseModel):
    messages: List[Message]


class Ranker(nn.Module):
    """Bags of words, of the last turn and of the history; a linear layer for each side; cosines."""

    def __init__(self):
        super().__init__()
        self.embed = nn.EmbeddingBag(N_ROWS, WIDTH, mode="sum")
        self.context, self.reply = (nn.Linear(2 * WIDTH, WIDTH) for _ in range(2))

    def bags(self, texts):
        ids = [[zlib.crc32(w.encode()) % N_ROWS for w in re.findall(r"\w+", t)] for t in texts]
        starts = torch.tensor([0, *map(len, ids[:-1])]).cumsum(0)
        sizes = torch.tensor([[max(1, len(each)) ** 0.5] for each in ids])
        return self.embed(torch.tensor(sum(ids, []), dtype=torch.int64), starts) / sizes

    def encode(self, layer, pairs):
        bags = self.bags([text.lower() for pair in pairs for text in pair])
        return functional.normalize(layer(bags.reshape(-1, 2 * WIDTH)), dim=1)


torch.set_num_threads(1)
torch.set_grad_enabled(False)
ranker, app = Ranker(), FastAPI()
with open(sys.argv[1]) as file:
    candidates = json.load(file)
vectors = torch.cat([ranker.encode(ranker.reply, [(text, "")]) for text in candidates])


@app.post("/v1/chat/completions")
async def chat(body: Conversation):
    *history, last = [each.content for each in body.messages[-HISTORY:]]
    encoded = ranker.encode(ranker.context, [(last, " ".join(history))])
    best = (20 * encoded @ vectors.T).softmax(1).max(1)
    message = {"role": "assistant", "content": candidates[int(best.indices)]}
    return {"choices": [{"index": 0, "message": message, "score": float(best.values)}]}


if __name__ == "__main__":
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
    print(
        f"Serving at http://127.0.0.1:{listening.getsockname()[1]} (", file=sys.stderr, flush=True
    )
    config = uvicorn.Config(app, log_level="warning", access_log=False)
    uvicorn.Server(config).run(sockets=[listening])
