"""The application of a server: its paths and their responses."""

import asyncio
import json
import time
from hmac import compare_digest
from pathlib import Path
from typing import Any, Dict, List, Sequence
from uuid import uuid4

import srsly
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from ..errors import DialogError, OutputError
from ..files.json_text import parse_json
from ..formats.chat_log import ChatLog
from ..formats.wording import kind
from ..messages import PARTNER, Message
from ..metrics.ranking import RANKED
from .limits import Limits
from .metrics import Metrics
from .request_body import Refusal, conversation_in, option_in, texts_in
from .served_model import LOG, Load, ServedModel

Body = Dict[str, Any]


def _as_json(content: Body, status: int = 200, headers: Any = None) -> Response:
    # ASCII, because lone surrogates have no UTF-8 form.
    return Response(json.dumps(content), status, headers, "application/json")


def _error_response(error: DialogError) -> Response:
    """Return the response for an error, in the format of OpenAI's errors."""
    refusal = error if isinstance(error, Refusal) else Refusal(400, str(error))
    return _as_json({"error": refusal.answer}, refusal.status, refusal.headers)


class Service:
    """Answer requests with the models of an application. (A single table has all paths, so that
    errors of every kind have OpenAI's format and are counted.)

    loads (Dict[str, Callable]): Model name to a function that loads the model.
    threshold, keys, log, limits: As for ``serving.app``.
    """

    def __init__(self, loads: Dict[str, Load], threshold: Any, keys: Any, log: Any, limits: Limits):
        self.metrics, self.limits = Metrics(), limits
        self.keys = [key.encode() for key in keys]
        self.log = None if log is None else ChatLog(log)
        given = (threshold, limits.max_waiting, self.metrics)
        self.models = {name: ServedModel(name, load, *given) for name, load in loads.items()}
        about = {"object": "model", "created": int(time.time()), "owned_by": "thincdialog"}
        listed = {"object": "list", "data": [{"id": name, **about} for name in self.models]}
        page = Path(__file__).with_name("page.html").read_bytes()
        # Path to its method, its response or the function that makes it, and whether it needs no
        # key.
        self.paths: Dict[str, Any] = {
            "/": ("GET", Response(page, media_type="text/html"), True),
            "/healthz": ("GET", _as_json({"status": "ok"}), True),
            "/metrics": ("GET", self.numbers, not keys),
            "/v1/models": ("GET", _as_json(listed), not keys),
            "/v1/chat/completions": ("POST", self.chat, not keys),
            "/v1/rerank": ("POST", self.rerank, not keys),
            "/classify": ("POST", self.classify, not keys),
        }

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, with a response or an error, and count it."""
        began, most = time.perf_counter(), self.limits.max_seconds
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        late = Refusal(408, "The request did not arrive in time.")

        async def work() -> Response:
            nonlocal late
            body = await self._read(Request(scope, receive), path)
            late = Refusal(503, f"There was no answer within {most:g} seconds.", code="timeout")
            answer = self.paths[path][1]
            return answer if isinstance(answer, Response) else await answer(body)

        try:
            response = await asyncio.wait_for(work(), most)
        except (asyncio.TimeoutError, ClientDisconnect):
            response = _error_response(late)
        except DialogError as error:
            response = _error_response(error)
        except Exception:  # A defect of this package, or an error in a custom agent.
            LOG.exception("a request failed")
            response = _error_response(Refusal(500, "The server failed; its log has details."))
        label = path if path in self.paths else "other"
        self.metrics.requests.labels(label, response.status_code).inc()
        self.metrics.seconds.labels(label).observe(time.perf_counter() - began)
        await response(scope, receive, send)

    async def _read(self, request: Request, path: str) -> Body:
        """Check the path and the key of a request, and return its body; a GET has no body."""
        method, _, is_open = self.paths.get(path, ("", None, True))
        if method != request.method.replace("HEAD", "GET"):
            status, text = (405, "Method Not Allowed") if method else (404, "Not Found")
            text = f"{request.method} {path[:99]}: {text}."
            raise Refusal(status, text, headers={"Allow": method} if method else None)
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        # Compare all keys, each in constant time.
        is_known = sum(compare_digest(key.encode(), each) for each in self.keys)
        if not is_open and not (is_known and scheme.lower() == "bearer"):
            text = "Give a key of this server: Authorization: Bearer KEY."
            raise Refusal(401, text, None, "invalid_api_key", {"WWW-Authenticate": "Bearer"})
        content = bytearray()
        async for chunk in request.stream():
            content += chunk
            if len(content) > self.limits.max_body:
                raise Refusal(413, f"The body has more than {self.limits.max_body:,} bytes.")
        try:
            body = parse_json(bytes(content)) if method == "POST" else {}
        except ValueError as error:
            raise Refusal(400, f"The body is not valid JSON: {error}") from None
        if not isinstance(body, dict):
            raise Refusal(400, f"The body is {kind(body)}, expected an object.")
        return body

    async def numbers(self, body: Body) -> Response:
        return Response(self.metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def chat(self, body: Body) -> Response:
        """Answer with a chat completion: the reply, and further candidates as further choices."""
        model, message = self._model(body), conversation_in(body, self.limits)
        n, is_stream = option_in(body, "n", 1, RANKED), option_in(body, "stream", False)
        (reply,) = await model.ask([message], n)
        turns = [*message["context"], (PARTNER, message["text"])]
        if self.log is not None:
            try:
                self.log.add(turns, reply.text or "")
            except OutputError as error:  # A full disk is no reason to refuse an answer.
                self.metrics.unlogged.inc()
                LOG.error("a conversation was not logged: %s", error)
        best = reply.best[:n]
        usage = _usage([text for _, text in turns], [text for text, _ in best])
        head = _body_with_id("chatcmpl", model, object="chat.completion" + ".chunk" * is_stream)
        if reply.guess is not None:
            head["guess"] = {"text": reply.guess.text, "score": reply.guess.probability}
        said = [{"role": "assistant", "content": text} for text, _ in best]
        ends = [{"index": n, "score": p, "finish_reason": "stop"} for n, (_, p) in enumerate(best)]
        if not is_stream:
            choices = [{**end, "message": message} for end, message in zip(ends, said)]
            return _as_json({**head, "choices": choices, "usage": usage})
        begins = [{**end, "finish_reason": None, "delta": delta} for end, delta in zip(ends, said)]
        events: List[Body] = [{"choices": [each]} for each in begins]
        events += [{"choices": [{**end, "delta": {}}]} for end in ends]
        options = body.get("stream_options")
        if isinstance(options, dict) and option_in(options, "include_usage", False):
            events.append({"choices": [], "usage": usage})
        lines = "".join(f"data: {json.dumps(head | event)}\n\n" for event in events)
        return Response(lines + "data: [DONE]\n\n", media_type="text/event-stream")

    async def classify(self, body: Body) -> Response:
        """Answer with the classes of texts."""
        model, texts = self._model(body), texts_in(body, "input", self.limits)
        messages = [Message(text=text, agent="user") for text in texts]
        replies, rows = await model.ask(messages), list[Body]()
        for n, reply in enumerate(replies):
            if reply.classes is None:
                raise Refusal(400, f"'{model.name}' has no classes to choose from.", "model")
            p = list(reply.classes.values())
            rows.append({"index": n, "label": reply.text, "probs": p, "num_classes": len(p)})
            if reply.labels is not None:
                rows[-1]["labels"] = [label.text for label in reply.labels]
        answer = _body_with_id("classify", model, object="list", data=rows, usage=_usage(texts))
        answer["classes"] = list(replies[0].classes or ())
        # Ten decimals of each probability, because writing all digits would take fifteen times as
        # long.
        return Response(srsly.json_dumps(answer), media_type="application/json")

    async def rerank(self, body: Body) -> Response:
        """Answer with the scores of documents for a query."""
        model, query = self._model(body), " ".join(texts_in(body, "query", self.limits))
        documents = texts_in(body, "documents", self.limits)
        # Clients may ask for more results than there are documents.
        top = option_in(body, "top_n", len(documents))
        distinct = list(dict.fromkeys(documents))
        message = Message(text=query, label_candidates=distinct, agent="user")
        (reply,) = await model.ask([message], len(distinct))
        scores = dict(zip((each.text for each in reply.candidates), reply.scores))
        if reply.classes is not None or scores.keys() != set(distinct):
            raise Refusal(400, f"'{model.name}' has no scores: it is not a ranker.", "model")
        rows: List[Body] = [
            {"index": index, "document": {"text": text}, "relevance_score": scores[text]}
            for index, text in enumerate(documents)
        ]
        rows.sort(key=lambda row: -row["relevance_score"])
        usage = _usage([query, *documents])
        return _as_json(_body_with_id("rerank", model, results=rows[:top], usage=usage))

    def _model(self, body: Body) -> ServedModel:
        names, name = ", ".join(self.models), body.get("model")
        if name is None and len(self.models) == 1:
            name = names
        if not isinstance(name, str):
            raise Refusal(400, f"'model' must be one of: {names}.", "model")
        if name not in self.models:
            text = f"There is no model {name[:99]!r} (found: {names})."
            raise Refusal(404, text, "model", "model_not_found")
        return self.models[name]


def _body_with_id(kind: str, model: ServedModel, **more: Any) -> Body:
    return {"id": f"{kind}-{uuid4().hex}", "created": int(time.time()), "model": model.name, **more}


def _usage(asked: Sequence[str], said: Sequence[str] = ()) -> Dict[str, int]:
    """Count words, because a model that chooses its replies generates no tokens."""
    n_asked, n_said = (sum(len(text.split()) for text in texts) for texts in (asked, said))
    return {"prompt_tokens": n_asked, "completion_tokens": n_said, "total_tokens": n_asked + n_said}
