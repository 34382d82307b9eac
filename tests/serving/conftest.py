"""Models to serve, and a client that sends requests to an application in this process."""

import asyncio
import csv

import httpx
import pytest

from tests.agents.topics import CONFIG as MULTI_LABEL
from tests.agents.topics import topics as texts_with_topics
from tests.training.examples import CLASSIFIER, RANKER, quietly_train
from thincdialog.serving import app

INTENTS = f"""
[tasks.intents]
@teachers = "thincdialog.LabelledText.v1"
train = "intents.csv"
{CLASSIFIER}
[training]
max_steps = 10
"""
WORDS = ("warm", "cold", "tall")


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Return a folder with a ranker, `barista`, and two classifiers, `intents` and `topics`."""
    folder = tmp_path_factory.mktemp("served")
    tables = {
        "intents": [(f"{word} {n}", word) for word in WORDS for n in range(8)],
        "topics": [(row["text"], ";".join(row["intents"])) for row in texts_with_topics(80)],
    }
    for name, rows in tables.items():
        with open(folder / f"{name}.csv", "w", newline="") as file:
            csv.writer(file).writerows([("text", "label"), *rows])
    head = '@teachers = "thincdialog.LabelledText.v1"\nlabel_separator = ";"\n'
    tail = MULTI_LABEL[MULTI_LABEL.index("[tokenizer]") :]
    topics = f'[tasks.topics]\n{head}train = "topics.csv"\n\n{tail}'
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        for name, config in {"barista": RANKER, "intents": INTENTS, "topics": topics}.items():
            steps = {} if name == "topics" else {"training__max_steps": 10}
            quietly_train(config, folder / "runs" / name, **steps)
            (folder / "runs" / name / "model-last").rename(folder / name)
    return folder


class Client:
    """Sends requests to an application. ``post`` and ``get`` return the status and the JSON of the
    answer."""

    def __init__(self, application):
        self.application = application

    def run(self, work):
        """Return the result of ``work(client)`` with an asynchronous client of httpx."""

        async def working():
            transport = httpx.ASGITransport(app=self.application, raise_app_exceptions=True)
            async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
                return await work(client)

        return asyncio.run(working())

    def post(self, path, body, **options):
        key = "content" if isinstance(body, bytes) else "json"
        found = self.run(lambda client: client.post(path, **{key: body}, **options))
        return found.status_code, found.json()

    def get(self, path, **options):
        return self.run(lambda client: client.get(path, **options))


@pytest.fixture(scope="session")
def client(models):
    """Return a client of an application with all three models."""
    return Client(app([models / name for name in ("barista", "intents", "topics")]))
