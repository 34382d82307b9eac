"""Answers in batches equal single answers, whatever arrives when; models are replaced in
between."""

import asyncio
import json
import shutil
import weakref

from hypothesis import given
from hypothesis import strategies as st

from tests.serving.conftest import Client
from tests.serving.test_application import CHAT, messages
from thincdialog.api import Message, TrainedModel
from thincdialog.serving import Limits, app, served_model

TEXTS = ["Good morning!", "A latte, please.", "warm 3", "", "In a bucket! " * 9, "\ud800", "tall"]
TALKS = st.lists(st.sampled_from(TEXTS), min_size=1, max_size=5).filter(lambda t: len(t) % 2)
# A model, the turns, the number of choices, and the number of loop iterations before the request.
ASKED = st.tuples(
    st.sampled_from(["barista", "intents", "topics"]), TALKS, st.integers(1, 4), st.integers(0, 9)
)
APPS, MODELS = {}, {}


@given(st.lists(ASKED, min_size=1, max_size=20), st.sampled_from([1, 40, 8192]))
def test_every_answer_is_the_answer_alone(models, asked, max_batch):
    names = ("barista", "intents", "topics")
    if max_batch not in APPS:
        folders = [models / name for name in names]
        APPS[max_batch] = Client(app(folders, limits=Limits(max_batch=max_batch)))
        MODELS.update((name, TrainedModel(models / name)) for name in names)

    async def ask(http, name, talk, n, later):
        for _ in range(later):
            await asyncio.sleep(0)
        body = {"model": name, "messages": messages(*talk), "n": n}
        # In ASCII, because a lone surrogate has no UTF-8 form.
        answer = (await http.post(CHAT, content=json.dumps(body))).json()
        return [(each["message"]["content"], each["score"]) for each in answer["choices"]]

    async def all_of_them(http):
        return await asyncio.gather(*(ask(http, *each) for each in asked))

    for (name, talk, n, _), found in zip(asked, APPS[max_batch].run(all_of_them)):
        context = [(place % 2, text) for place, text in enumerate(talk[:-1])]
        (alone,) = MODELS[name].answer([Message(text=talk[-1], context=context)], n)
        assert found == [tuple(each) for each in alone.best[:n]]


def test_waiting_requests_are_the_next_batch(models):
    application = app(models / "barista")

    async def some(http):
        asked = [http.post(CHAT, json={"messages": messages(f"hi {n}")}) for n in range(40)]
        await asyncio.gather(*asked)
        return (await http.get("/metrics")).text

    lines = Client(application).run(some).splitlines()
    counts = dict(line.rsplit(" ", 1) for line in lines if not line.startswith("#"))
    assert counts['thincdialog_batch_size_sum{model="barista"}'] == "40.0"
    assert float(counts['thincdialog_batch_size_count{model="barista"}']) < 20


def test_a_model_replaced_under_load_loses_no_request(models, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(served_model, "LOOK_SECONDS", 0.02)
    place, replies, is_over = tmp_path / "model", [], asyncio.Event()
    shutil.copytree(models / "barista", place)
    application = app(place)
    (served,) = application.routes[0].app.models.values()
    old = weakref.ref(served.model)

    def replace(source):
        new = tmp_path / "new"
        shutil.copytree(source, new)
        place.rename(tmp_path / ".model.old.00000000")
        new.rename(place)
        shutil.rmtree(tmp_path / ".model.old.00000000")

    async def ask(http):
        while not is_over.is_set():
            answer = await http.post(CHAT, json={"messages": messages("warm 1")})
            assert answer.status_code == 200
            replies.append(answer.json()["choices"][0]["message"]["content"])

    async def replacing():
        async def until(condition):
            n_before = len(replies)
            while len(replies) < n_before + 9 or not condition(replies[-1]):
                await asyncio.sleep(0.01)

        try:
            await until(lambda said: True)
            (tmp_path / "bad").mkdir()
            shutil.copy(models / "barista" / "meta.json", tmp_path / "bad")
            replace(tmp_path / "bad")
            await until(lambda said: "still answers" in caplog.text)
            assert set(replies) == {replies[0]} != {"warm"}
            replace(models / "intents")
            await until(lambda said: said == "warm")
        finally:
            is_over.set()

    async def work(http):
        await asyncio.wait_for(asyncio.gather(replacing(), *(ask(http) for _ in range(20))), 60)

    Client(application).run(work)
    # From some batch on, answers are those of the new model, for all requests in the batch.
    assert replies == sorted(replies, key="warm".__eq__) and len(set(replies)) == 2
    assert "is incomplete" in caplog.text or "is missing" in caplog.text
    assert old() is None  # Its memory has been freed.


def test_a_replacement_that_fails_in_any_way_is_not_the_last_one(
    models, tmp_path, monkeypatch, caplog
):
    monkeypatch.setattr(served_model, "LOOK_SECONDS", 0.02)
    place = tmp_path / "model"
    shutil.copytree(models / "intents", place)
    application, act = app(place), TrainedModel.act
    shutil.rmtree(place)
    shutil.copytree(models / "barista", place)
    wrong, failed = ValueError("an agent's own mistake"), asyncio.Event()

    def broken(*given):
        failed.set()
        raise wrong

    async def said(http):
        answer = await http.post(CHAT, json={"messages": messages("warm 1")})
        return answer.json()["choices"][0]["message"]["content"]

    async def work(http):
        while await said(http) == "warm":  # The model was replaced before the first request.
            await asyncio.sleep(0.02)
        with monkeypatch.context() as patch:
            patch.setattr(TrainedModel, "act", broken)
            (place / "meta.json").touch()
            await asyncio.wait_for(failed.wait(), 30)
            await asyncio.sleep(0.2)
        assert TrainedModel.act is act and await said(http) != "warm"
        # As scp does, file by file.
        shutil.copy(models / "intents" / "meta.json", place)
        while "is damaged" not in caplog.text:
            await asyncio.sleep(0.02)
        assert await said(http) != "warm"
        others = shutil.ignore_patterns("meta.json")
        shutil.copytree(models / "intents", place, ignore=others, dirs_exist_ok=True)
        while await said(http) != "warm":
            await asyncio.sleep(0.02)

    async def in_time(http):
        await asyncio.wait_for(work(http), 30)

    Client(application).run(in_time)
