"""The protocol: answers are those of the model, and each mistake is reported."""

import asyncio
import gc
import io
import json
import time

import httpx
import pytest
from starlette.testclient import TestClient
from starlette.websockets import WebSocketDisconnect

from tests.serving.conftest import Client
from thincdialog.api import TrainedModel, load, predict
from thincdialog.cli.main import main
from thincdialog.errors import DialogError
from thincdialog.formats.chat_log import keep_longest
from thincdialog.serving import Limits, app, named_models

CHAT = "/v1/chat/completions"
SAID = ["Good morning!", "What size would you like?", "A tall one, please."]


def messages(*texts):
    return [{"role": ("user", "assistant")[n % 2], "content": t} for n, t in enumerate(texts)]


def test_models_are_listed(client):
    found = client.get("/v1/models").json()
    assert found["object"] == "list" and len({each["created"] for each in found["data"]}) == 1
    assert [(each["id"], each["object"]) for each in found["data"]] == [
        ("barista", "model"), ("intents", "model"), ("topics", "model")
    ]  # fmt: skip
    assert client.get("/healthz").json() == {"status": "ok"}
    assert client.post("/healthz", {})[0] == 405


def test_chat_gives_the_replies_of_the_model(client, models):
    bot = load(models / "barista")
    (expected,) = bot.respond_to_all([SAID], top=3)
    status, found = client.post(CHAT, {"model": "barista", "messages": messages(*SAID), "n": 3})
    assert status == 200 and found["object"] == "chat.completion" and found["model"] == "barista"
    choices = found["choices"]
    assert [(each["message"]["content"], each["score"]) for each in choices] == expected
    assert [each["index"] for each in choices] == [0, 1, 2]
    assert {each["message"]["role"] for each in choices} == {"assistant"}
    assert {each["finish_reason"] for each in choices} == {"stop"}
    words = [len(text.split()) for text in SAID], [len(each.text.split()) for each in expected]
    assert found["usage"] == {
        "prompt_tokens": sum(words[0]),
        "completion_tokens": sum(words[1]),
        "total_tokens": sum(map(sum, words)),
    }


def test_chat_ignores_options_without_a_meaning(client):
    plain = {"model": "barista", "messages": messages(*SAID)}
    (expected,) = client.post(CHAT, plain)[1]["choices"]
    parts = [{"type": "text", "text": "A tall "}, {"type": "text", "text": "one, please."}]
    more = [
        {"role": "system", "content": "Be brief."},
        {"role": "developer", "content": [{"type": "text", "text": "And kind."}]},
        *messages(*SAID[:2]),
        {"role": "assistant", "content": None, "tool_calls": []},
        {"role": "tool", "content": "3", "tool_call_id": "x"},
        {"role": "user", "content": parts, "name": "Ann"},
    ]
    options = {"temperature": 0.3, "top_p": 1, "max_tokens": 5, "stop": ["\n"], "user": "u",
               "tools": [], "response_format": {"type": "text"}, "stream": False}  # fmt: skip
    status, found = client.post(CHAT, {**plain, "messages": more, **options})
    assert (status, found["choices"]) == (200, [expected])
    # Consecutive messages of one side are one turn, as in training data.
    two = [*messages(*SAID[:2]), *({"role": "user", "content": t} for t in SAID[::2])]
    joined = messages(*SAID[:2], "\n".join(SAID[::2]))
    answers = [client.post(CHAT, {**plain, "messages": some})[1] for some in (two, joined)]
    assert answers[0]["choices"] == answers[1]["choices"]


def events_of(response):
    lines = [line for line in response.text.split("\n") if line]
    assert lines.pop() == "data: [DONE]" and all(line.startswith("data: ") for line in lines)
    return [json.loads(line[6:]) for line in lines]


def test_chat_streams_the_same(client):
    body = {"model": "barista", "messages": messages(*SAID), "n": 2}
    whole = client.post(CHAT, body)[1]
    options = {"stream": True, "stream_options": {"include_usage": True}}
    response = client.run(lambda c: c.post(CHAT, json={**body, **options}))
    assert response.headers["content-type"].startswith("text/event-stream")
    *events, last = events_of(response)
    said = {0: "", 1: ""}
    for event in events:
        (choice,) = event["choices"]
        said[choice["index"]] += choice["delta"].get("content", "")
        assert event["object"] == "chat.completion.chunk" and event["id"] == last["id"]
    assert list(said.values()) == [each["message"]["content"] for each in whole["choices"]]
    assert (last["choices"], last["usage"]) == ([], whole["usage"])
    response = client.run(lambda c: c.post(CHAT, json={**body, "stream": True}))
    assert all("usage" not in event for event in events_of(response))


def test_chat_says_that_it_does_not_know(models):
    client = Client(app(models / "barista", threshold=1.0))
    status, found = client.post(CHAT, {"messages": messages("hi"), "n": 3})
    said, *others = ((each["message"]["content"], each["score"]) for each in found["choices"])
    assert said == ("I don't know.", None)
    assert (others[0], len(others)) == (tuple(found["guess"].values()), 2)


def test_classify_gives_label_and_probabilities(client, models):
    texts = ["warm 1", "tall 7", "nothing"]
    expected = load(models / "intents").respond_to_all(texts, top=9)
    status, found = client.post("/classify", {"model": "intents", "input": texts})
    assert status == 200 and found["classes"] == sorted(["warm", "cold", "tall"])
    for index, (row, answers) in enumerate(zip(found["data"], expected)):
        known = dict(answers)
        assert (row["index"], row["label"], row["num_classes"]) == (index, answers[0].text, 3)
        assert row["probs"] == [round(known[name], 10) for name in found["classes"]]
    one = client.post("/classify", {"model": "intents", "input": texts[0]})[1]
    assert one["data"] == found["data"][:1] and one["usage"]["prompt_tokens"] == 2
    # The classifier can chat, too.
    said = client.post(CHAT, {"model": "intents", "messages": messages(texts[0])})[1]
    assert said["choices"][0]["message"]["content"] == found["data"][0]["label"]
    unsure = Client(app(models / "intents", threshold=1.0)).post("/classify", {"input": "warm"})
    assert unsure[1]["data"][0]["label"] == "unknown"
    assert sum(unsure[1]["data"][0]["probs"]) == pytest.approx(1.0)


def test_classify_gives_several_labels(client, models):
    texts = ["hello refund and parcel", "hello well"]
    expected = [row["reply"] for row in predict(models / "topics", texts)]
    data = client.post("/classify", {"model": "topics", "input": texts})[1]["data"]
    assert [row["labels"] for row in data] == expected and len(expected[0]) == 2
    assert [row["label"] for row in data] == [", ".join(labels) for labels in expected]


def test_rerank_gives_scores_of_documents(client, models):
    documents = ["Here you are.", "What size?", {"text": "Good morning!"}, "What size?"]
    texts = [*documents[:2], "Good morning!"]
    expected = dict(load(models / "barista").respond("Hello!", texts, top=9))
    body = {"model": "barista", "query": "Hello!", "documents": documents}
    status, found = client.post("/v1/rerank", body)
    scores = [each["relevance_score"] for each in found["results"]]
    assert status == 200 and scores == sorted(scores, reverse=True)
    assert sorted(each["index"] for each in found["results"]) == [0, 1, 2, 3]
    assert {each["document"]["text"]: each["relevance_score"] for each in found["results"]} == (
        expected
    )
    # As in other servers, there may be fewer documents than a client's usual `top_n`.
    for top in (1, 4, 5, 10**30):
        some = client.post("/v1/rerank", {**body, "top_n": top})[1]["results"]
        assert some == found["results"][:top]


def test_rerank_scores_more_documents_than_replies_rank(client):
    documents = [f"Document {n}" for n in range(300)]
    body = {"model": "barista", "query": "Hello!", "documents": documents}
    status, found = client.post("/v1/rerank", body)
    assert status == 200 and len(found["results"]) == 300


OK = {"model": "barista", "messages": messages("hi")}
WRONG = [
    (CHAT, b"{", 400, None, "not valid JSON"),
    (CHAT, b"\xff", 400, None, "not valid JSON"),
    (CHAT, b"[" * 100_000, 400, None, "not valid JSON"),
    (CHAT, [OK], 400, None, "a list, expected an object"),
    (CHAT, {**OK, "model": "other"}, 404, "model", "no model 'other'"),
    (CHAT, {**OK, "model": 3}, 400, "model", "must be one of: barista, intents, topics"),
    (CHAT, {"messages": messages("hi")}, 400, "model", "must be one of"),
    (CHAT, {"model": "barista"}, 400, "messages", "'messages' is missing"),
    (CHAT, {**OK, "messages": []}, 400, "messages", "expected a list of one or more"),
    (CHAT, {**OK, "messages": ["hi"]}, 400, "messages[0]", "a string ('hi'), expected an object"),
    (CHAT, {**OK, "messages": [{"role": "bot", "content": "hi"}]}, 400, "messages[0].role",
     "expected one of user, assistant, system"),
    (CHAT, {**OK, "messages": [{"role": ["user"], "content": "hi"}]}, 400, "messages[0].role",
     "a list"),
    (CHAT, {**OK, "messages": [{"role": "user", "content": 5}]}, 400, "messages[0].content",
     "a number ('5')"),
    (CHAT, {**OK, "messages": [{"role": "user", "content": [{"type": "image_url"}]}]}, 400,
     "messages[0].content[0]", '{"type": "text"'),
    (CHAT, {**OK, "messages": [{"role": "user", "contents": "hi"}]}, 400, "messages[0].content",
     "is missing, expected a string"),
    (CHAT, {**OK, "messages": messages("hi", "oh")}, 400, "messages", "last message must be"),
    (CHAT, {**OK, "messages": [{"role": "system", "content": "x"}]}, 400, "messages", "last"),
    (CHAT, {**OK, "n": 0}, 400, "n", "a whole number from 1 to 100"),
    (CHAT, {**OK, "n": True}, 400, "n", "true or false"),
    (CHAT, {**OK, "stream": "no"}, 400, "stream", "a string ('no'), expected true or false"),
    ("/classify", {"model": "intents"}, 400, "input", "missing"),
    ("/classify", {"model": "intents", "input": [3]}, 400, "input[0]", "expected a string"),
    ("/classify", {"model": "barista", "input": "hi"}, 400, "model", "has no classes"),
    ("/v1/rerank", {"model": "barista", "query": "hi"}, 400, "documents", "missing"),
    ("/v1/rerank", {"model": "barista", "documents": ["a"]}, 400, "query", "missing"),
    ("/v1/rerank", {"model": "barista", "query": "hi", "documents": ["a"], "top_n": 0}, 400,
     "top_n", "expected a whole number 1 or more"),
    ("/v1/rerank", {"model": "intents", "query": "hi", "documents": ["a"]}, 400, "model",
     "is not a ranker"),
    ("/v1/nothing", OK, 404, None, "POST /v1/nothing: Not Found"),
    ("/v1/models", OK, 405, None, "Method Not Allowed"),
]  # fmt: skip


@pytest.mark.parametrize("path, body, status, param, text", WRONG)
def test_mistakes_are_named_in_the_shape_of_openai(client, path, body, status, param, text):
    found, answer = client.post(path, body)
    error = answer.pop("error")
    assert (found, answer, error["param"]) == (status, {}, param) and text in error["message"]
    assert error["type"] == "invalid_request_error"
    assert error["code"] == ("model_not_found" if "no model" in text else None)


def test_requests_that_are_too_large_are_refused(models):
    limits = Limits(max_body=400, max_messages=3, max_characters=20)
    client = Client(app(models / "barista", limits=limits))
    for body, text in (
        ({"messages": messages("hi", "oh", "hi", "oh", "hi")}, "has 5 parts"),
        ({"messages": messages("hi" * 11)}, "has 22 characters"),
        ({"messages": messages("hi"), "more": "x" * 400}, "more than 400 bytes"),
    ):
        status, answer = client.post(CHAT, body)
        assert status == 413 and text in answer["error"]["message"]
    assert client.post(CHAT, {"messages": messages("hi", "oh", "hi")})[0] == 200


def test_requests_that_would_wait_too_long_are_refused(models):
    client = Client(app(models / "barista", limits=Limits(max_waiting=2)))

    async def many(http):
        asked = [http.post(CHAT, json={"messages": messages(f"hi {n}")}) for n in range(5)]
        return await asyncio.gather(*asked)

    answers = client.run(many)
    assert sorted(each.status_code for each in answers) == [200, 200, 429, 429, 429]
    refused = next(each for each in answers if each.status_code == 429)
    assert refused.headers["retry-after"] == "1"
    assert refused.json()["error"]["type"] == "rate_limit_error"
    assert client.post(CHAT, {"messages": messages("hi")})[0] == 200


@pytest.mark.slow
def test_a_slow_sender_and_a_slow_model_end_after_their_seconds(models, monkeypatch):
    application = app(models / "barista", limits=Limits(max_seconds=0.2))

    async def slow(client):
        async def body():
            yield b'{"messages": '
            await asyncio.sleep(5)

        return await client.post(CHAT, content=body())

    assert Client(application).run(slow).status_code == 408
    with monkeypatch.context() as patch:
        patch.setattr(TrainedModel, "act", lambda *given: time.sleep(0.4))
        status, answer = Client(application).post(CHAT, {"messages": messages("hi")})
    assert (status, answer["error"]["code"]) == (503, "timeout")
    time.sleep(0.4)  # The model was asked once more, for the message alone.
    assert Client(application).post(CHAT, {"messages": messages("hi")})[0] == 200


def test_a_key_is_needed_where_keys_are_given(models):
    client = Client(app(models / "barista", api_keys=["one", "two"]))
    body = {"messages": messages("hi")}
    for given, expected in (
        ("Bearer two", 200), ("Bearer one", 200), ("bearer one", 200), ("Bearer three", 401),
        ("Bearer ", 401), ("Bearer \xe9", 401), ("one", 401), ("Basic one", 401),
    ):  # fmt: skip
        headers = {"Authorization": given.encode("latin-1")}
        status, answer = client.post(CHAT, body, headers=headers)
        assert status == expected
    assert answer["error"]["code"] == "invalid_api_key"
    assert client.get("/v1/models").status_code == client.get("/metrics").status_code == 401
    assert client.get("/healthz").status_code == client.get("/").status_code == 200


def test_other_web_pages_need_permission(models):
    headers = {"Origin": "https://chat.example"}
    client = Client(app(models / "barista", cors=["https://chat.example"]))
    allowed = client.get("/v1/models", headers=headers).headers
    assert allowed["access-control-allow-origin"] == "https://chat.example"
    asked = {**headers, "Access-Control-Request-Method": "POST",
             "Access-Control-Request-Headers": "authorization, content-type"}  # fmt: skip
    assert client.run(lambda http: http.options(CHAT, headers=asked)).status_code == 200
    other = client.get("/v1/models", headers={"Origin": "https://other.example"}).headers
    assert "access-control-allow-origin" not in other
    assert "access-control-allow-origin" not in Client(app(models / "barista")).get("/").headers


def test_it_counts_for_prometheus(models):
    client = Client(app(models / "barista"))

    async def some(http):
        asked = [http.post(CHAT, json={"messages": messages("hi")}) for _ in range(5)]
        await asyncio.gather(*asked, http.post(CHAT, content=b"{"))
        return (await http.get("/metrics")).text

    text = client.run(some)
    chat = f'path="{CHAT}"'
    for line in (
        f'thincdialog_requests_total{{{chat},status="200"}} 5.0',
        f'thincdialog_requests_total{{{chat},status="400"}} 1.0',
        f"thincdialog_request_seconds_count{{{chat}}} 6.0",
        'thincdialog_batch_size_sum{model="barista"} 5.0',
        'thincdialog_waiting{model="barista"} 0.0',
        "thincdialog_unlogged_total 0.0",
    ):
        assert line in text.splitlines()


def test_it_logs_conversations_that_train_reads(models, tmp_path, capsys):
    log = tmp_path / "log.jsonl"
    client = Client(app(models / "barista", log=log))
    said = messages("Good morning!")
    for text in ("A tall one.", "Bye \ud800\u2028!"):
        reply = client.post(CHAT, {"messages": said})[1]["choices"][0]["message"]
        said += [reply, {"role": "user", "content": text}]
    client.post(CHAT, {"messages": messages("Good morning!", "Bye.", "Why?")})
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert rows[1]["messages"][:-1] == said[:3] and len({row["id"] for row in rows}) == 1
    assert keep_longest(str(log), str(tmp_path / "kept.jsonl")) == (3, 2, 0)


def test_chat_writes_the_same_lines(models, tmp_path, monkeypatch, capsys):
    said = "Hi!\n/reset\nGood\\nmorning!\nA latte.\n"
    monkeypatch.setattr("sys.stdin", io.StringIO(said))
    log = tmp_path / "log.jsonl"
    assert main(["chat", str(models / "barista"), "--log", str(log)]) == 0
    replies = capsys.readouterr().out.splitlines()
    rows = [row["messages"] for row in map(json.loads, log.read_text().splitlines())]
    assert [[each["content"] for each in row] for row in rows] == [
        ["Hi!", replies[0]],
        ["Good\nmorning!", replies[1]],
        ["Good\nmorning!", replies[1], "A latte.", replies[2]],
    ]


def test_chat_on_a_full_disk_names_the_log(models, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("Hi!\n"))
    assert main(["chat", str(models / "barista"), "--log", "/dev/full"]) == 1
    assert "✘ /dev/full  could not be written: No space left on device" in capsys.readouterr().err


def test_a_full_disk_is_no_reason_to_refuse(models, caplog):
    client = Client(app(models / "barista", log="/dev/full"))
    assert client.post(CHAT, {"messages": messages("hi")})[0] == 200
    assert (
        "a conversation was not logged: /dev/full  could not be written: No space left"
        in caplog.text
    )
    assert "thincdialog_unlogged_total 1.0" in client.get("/metrics").text


def test_names_of_models(models, tmp_path):
    run = tmp_path / "mine"
    found = named_models([run / "model-best", f"other={run}", models / "intents"])
    assert list(found) == ["mine", "other", "intents"]
    # Deployments often use links, which may point elsewhere later.
    (tmp_path / "now").symlink_to(run)
    assert named_models(tmp_path / "now") == {"now": str(tmp_path / "now")}
    with pytest.raises(DialogError, match="Two models have the name 'mine': write NAME="):
        named_models([run, run / "model-last"])


def test_it_can_be_mounted_elsewhere(models):
    from starlette.applications import Starlette
    from starlette.routing import Mount

    inner = app({"a": models / "barista", "b": models / "intents"})
    client = Client(Starlette(routes=[Mount("/bot", inner)]))
    found = client.post(f"/bot{CHAT}", {"model": "b", "messages": messages("warm")})
    assert found[0] == 200 and found[1]["model"] == "b"


def test_a_websocket_is_refused(client, caplog):
    with pytest.raises(WebSocketDisconnect):
        with TestClient(client.application).websocket_connect("/"):
            pass
    assert not caplog.records


def test_an_agent_that_fails_is_an_error_in_the_shape_of_openai(models, monkeypatch, caplog):
    client = Client(app(models / "barista"))
    with monkeypatch.context() as patch:
        patch.setattr(TrainedModel, "act", lambda *given: {}["no key"])
        status, answer = client.post(CHAT, {"messages": messages("hi")})
    assert (status, answer["error"]["type"]) == (500, "server_error")
    assert "no key" in caplog.text and "no key" not in answer["error"]["message"]
    assert f'requests_total{{path="{CHAT}",status="500"}} 1.0' in client.get("/metrics").text
    assert client.post(CHAT, {"messages": messages("hi")})[0] == 200


def test_one_message_at_fault_leaves_the_others_their_answers(models, monkeypatch, caplog):
    act = TrainedModel.act

    def picky(self, players, observations, top=1):
        if any(each["text"] == "bad" for each in observations):
            raise DialogError("the text is bad")
        return act(self, players, observations, top)

    monkeypatch.setattr(TrainedModel, "act", picky)
    client = Client(app([models / "barista", models / "intents"]))

    async def some(http):
        said = [{"model": "barista", "messages": messages(text)} for text in ("a", "bad", "b")]
        asked = [http.post(CHAT, json=body) for body in said]
        asked.append(http.post("/classify", json={"model": "intents", "input": ["bad", "bad"]}))
        return await asyncio.gather(*asked)

    answers = client.run(some)
    gc.collect()  # Makes asyncio report errors that were never retrieved.
    assert [each.status_code for each in answers] == [200, 400, 200, 400] and not caplog.text
    assert answers[1].json()["error"]["message"] == "the text is bad"
    assert isinstance(answers[0], httpx.Response)
