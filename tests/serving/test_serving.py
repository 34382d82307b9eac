"""The application on Ray Serve, as in docs/serving.md."""

import json
import subprocess
import sys

import pytest

from tests.test_docs import blocks
from tests.test_house import ROOT

# Sends requests to both deployments, and prints their answers as JSON.
ASK = """
import json
from concurrent.futures import ThreadPoolExecutor
import httpx, ray
from ray import serve
import ray_serve

ray.init(num_cpus=4, include_dashboard=False, logging_level="ERROR")
serve.run(ray_serve.chat, name="chat", route_prefix="/chat")
serve.run(ray_serve.replies, name="replies", route_prefix="/replies")
texts = ["Good morning!", "A latte, please.", "Thanks!"] * 4


def ask(text):
    body = {"messages": [{"role": "user", "content": text}]}
    whole = httpx.post("http://127.0.0.1:8000/chat/v1/chat/completions", json=body, timeout=60)
    said = httpx.post("http://127.0.0.1:8000/replies", json={"text": text}, timeout=60)
    return [whole.json()["choices"][0]["message"]["content"], said.text]


with ThreadPoolExecutor(12) as threads:
    print(json.dumps(list(map(list, zip(texts, threads.map(ask, texts))))))
serve.shutdown()
ray.shutdown()
"""


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
def test_ray_serve_answers_as_the_model_does(models, tmp_path):
    pytest.importorskip("ray.serve", reason="needs pip install 'ray[serve]'", exc_type=ImportError)
    from thincdialog.api import load

    named = {name: text for _, name, text in blocks(ROOT / "docs" / "serving.md") if name}
    text = named["ray_serve.py"].replace("output/quickstart", str(models / "barista"))
    (tmp_path / "ray_serve.py").write_text(text)
    (tmp_path / "ask.py").write_text(ASK)
    done = subprocess.run(
        [sys.executable, "ask.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-3000:]
    (line,) = (each for each in done.stdout.splitlines() if each.startswith("[["))
    for text, replies in json.loads(line):
        (expected,) = load(models / "barista").respond_to_all([text])
        assert replies == [expected, expected]
