"""The application of a server: its routes, and what they answer."""

import asyncio
import hmac
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, List, Mapping, Optional, Sequence

import srsly
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from ..config import PathLike
from ..errors import DialogError, OutputError
from ..files.json_text import parse_json
from ..formats.wording import kind
from ..messages import PARTNER, Message
from ..metrics.ranking import RANKED
from ..training.trained_model import TrainedModel
from .chat_log import ChatLog
from .limits import Limits
from .metrics import Metrics
from .request_body import Refusal, conversation_in, flag_in, number_in, texts_in
from .served_model import LOG, ServedModel

Body = Dict[str, Any]
Handler = Callable[[Body], Awaitable[Response]]
PAGE = Path(__file__).with_name("page.html")
# A call of the system for each identity, as uuid4 makes it, takes as long as reading a request.
IDENTITIES = random.Random()
# The page uses nothing but itself and this server.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:"
)


async def _page(request: Request) -> Response:
    return FileResponse(PAGE, headers={"Content-Security-Policy": POLICY})


async def _health(request: Request) -> Response:
    return _as_json({"status": "ok"})


async def _unknown(request: Request, error: HTTPException) -> Response:
    """A path or method that Starlette does not know."""
    text = f"{request.method} {request.url.path}: {error.detail}."
    return _refused(Refusal(error.status_code, text, headers=dict(error.headers or {})))


def _refused(refusal: Refusal) -> Response:
    """An error in the shape of OpenAI's."""
    types = {429: "rate_limit_error", 500: "server_error", 503: "server_error"}
    error = {
        "message": refusal.detail,
        "type": types.get(refusal.status_code, "invalid_request_error"),
        "param": refusal.param,
        "code": refusal.code,
    }
    return _as_json({"error": error}, refusal.status_code, refusal.headers)


def _as_json(
    content: Any, status: int = 200, headers: Optional[Mapping[str, str]] = None
) -> Response:
    # In ASCII, because lone surrogates have no UTF-8 form.
    return Response(json.dumps(content), status, headers, "application/json")


class Service:
    """The models of an application, and its handlers.

    models (Mapping[str, PathLike]): Their folders, by name.
    load (Callable[[PathLike], TrainedModel]): Loads the model of a folder.
    threshold, api_keys, log, limits: As of ``serving.app``.
    """

    def __init__(
        self,
        models: Mapping[str, PathLike],
        load: Callable[[PathLike], TrainedModel],
        threshold: Optional[float],
        api_keys: Sequence[str],
        log: Optional[PathLike],
        limits: Limits,
    ):
        self.metrics, self.threshold, self.limits = Metrics(), threshold, limits
        self.keys, self.began = [key.encode() for key in api_keys], int(time.time())
        self.log = None if log is None else ChatLog(log)
        given = (ThreadPoolExecutor(1, "answering"), limits.max_waiting, self.metrics)
        self.models = {
            name: ServedModel(name, partial(load, folder), *given)
            for name, folder in models.items()
        }

    def application(self, cors: Sequence[str]) -> Starlette:
        """The application; ``cors`` as of ``serving.app``."""
        gets = {"/v1/models": self.list_models, "/metrics": self.numbers}
        posts = {"/v1/chat/completions": self.chat, "/classify": self.classify}
        posts["/v1/rerank"] = self.rerank
        routes = [Route("/", _page), Route("/healthz", _health)]
        routes += [Route(path, self._endpoint(each)) for path, each in gets.items()]
        routes += [Route(p, self._endpoint(each), methods=["POST"]) for p, each in posts.items()]
        allowed: Any = {"allow_origins": cors, "allow_methods": ["*"], "allow_headers": ["*"]}
        middleware = [Middleware(CORSMiddleware, **allowed)] if cors else []
        handlers: Any = {HTTPException: _unknown}
        return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers)

    def _endpoint(self, handler: Handler) -> Callable[[Request], Awaitable[Response]]:
        """A function that asks for a key, answers what is refused, and counts."""

        async def answer(request: Request) -> Response:
            began, path, body = time.perf_counter(), request.url.path, None

            async def work() -> Response:
                nonlocal body
                body = await self._read(request)
                return await handler(body)

            try:
                self._check_key(request.headers.get("authorization", ""))
                response = await asyncio.wait_for(work(), self.limits.max_seconds)
            except asyncio.TimeoutError:
                late = Refusal(408, "The request did not arrive in time.")
                if body is not None:
                    text = f"There was no answer within {self.limits.max_seconds:g} seconds."
                    late = Refusal(503, text, code="timeout")
                response = _refused(late)
            except Refusal as refusal:
                response = _refused(refusal)
            except DialogError as error:
                response = _refused(Refusal(400, str(error)))
            except ClientDisconnect:
                response = Response(status_code=499)
            except Exception:  # A defect, or an agent's own code.
                LOG.exception("a request failed")
                response = _refused(Refusal(500, "The server made a mistake; its log has details."))
            self.metrics.requests.labels(path, response.status_code).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - began)
            return response

        return answer

    def _check_key(self, given: str) -> None:
        scheme, _, key = given.partition(" ")
        # All are compared, each in constant time.
        is_known = sum(hmac.compare_digest(key.encode(), each) for each in self.keys)
        if self.keys and not (is_known and scheme.lower() == "bearer"):
            text = "Give a key of this server: Authorization: Bearer KEY."
            raise Refusal(401, text, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})

    async def _read(self, request: Request) -> Body:
        """Receive the body of a request, a JSON object if it is a POST."""
        content = bytearray()
        async for chunk in request.stream():
            content += chunk
            if len(content) > self.limits.max_body:
                raise Refusal(413, f"The body has more than {self.limits.max_body:,} bytes.")
        try:
            body = parse_json(bytes(content)) if request.method == "POST" else {}
        except ValueError as error:
            raise Refusal(400, f"The body is not valid JSON: {error}") from None
        if not isinstance(body, dict):
            raise Refusal(400, f"The body is {kind(body)}, expected an object.")
        return body

    async def numbers(self, body: Body) -> Response:
        return Response(self.metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def list_models(self, body: Body) -> Response:
        about = {"object": "model", "created": self.began, "owned_by": "thincdialog"}
        return _as_json({"object": "list", "data": [{"id": name, **about} for name in self.models]})

    async def chat(self, body: Body) -> Response:
        """A chat completion: the reply, and further candidates as further choices."""
        model, message = self._model(body), conversation_in(body, self.limits)
        n, is_stream = number_in(body, "n", 1, RANKED), flag_in(body, "stream")
        (reply,) = await model.ask([message], n, self.threshold)
        turns = [*message["context"], (PARTNER, message["text"])]
        if self.log is not None:
            try:
                self.log.add(turns, reply.text or "")
            except OutputError as error:  # A full disk is no reason to refuse an answer.
                self.metrics.unlogged.inc()
                LOG.error("a conversation was not logged: %s", error)
        head = {**_head("chatcmpl", model), "object": "chat.completion"}
        if reply.guess is not None:
            head["guess"] = {"text": reply.guess.text, "score": reply.guess.probability}
        choices: List[Body] = [
            {"index": index, "score": score, "message": {"role": "assistant", "content": text},
             "finish_reason": "stop"}
            for index, (text, score) in enumerate(reply.best[:n])
        ]  # fmt: skip
        said = [choice["message"]["content"] for choice in choices]
        usage = _usage([text for _, text in turns], said)
        if is_stream:
            options = body.get("stream_options")
            has_usage = isinstance(options, dict) and flag_in(options, "include_usage")
            events = _events(head, choices, usage if has_usage else None)
            return StreamingResponse(events, media_type="text/event-stream")
        return _as_json({**head, "choices": choices, "usage": usage})

    async def classify(self, body: Body) -> Response:
        """The classes of texts."""
        model, texts = self._model(body), texts_in(body, "input", self.limits)
        messages = [Message(text=text, agent="user") for text in texts]
        rows, classes = [], dict[str, float]()
        for index, reply in enumerate(await model.ask(messages, 1, self.threshold)):
            if reply.classes is None:
                text = f"'{model.name}' has no classes: use /v1/chat/completions or /v1/rerank."
                raise Refusal(400, text, "model")
            classes, probabilities = reply.classes, list(reply.classes.values())
            row: Body = {"index": index, "label": reply.text, "probs": probabilities}
            if reply.labels is not None:
                row["labels"] = [label.text for label in reply.labels]
            rows.append({**row, "num_classes": len(classes)})
        about = {"object": "list", "classes": list(classes), "data": rows}
        answer = {**_head("classify", model), **about, "usage": _usage(texts)}
        # Ten decimals of each probability: all digits would take fifteen times as long to write.
        return Response(srsly.json_dumps(answer), media_type="application/json")

    async def rerank(self, body: Body) -> Response:
        """The scores of documents for a query."""
        model, query = self._model(body), " ".join(texts_in(body, "query", self.limits))
        documents = texts_in(body, "documents", self.limits)
        # Clients ask for their usual number of fewer documents, too.
        top = number_in(body, "top_n", len(documents))
        distinct = list(dict.fromkeys(documents))
        message = Message(text=query, label_candidates=distinct, agent="user")
        (reply,) = await model.ask([message], len(distinct), 0.0)
        scores = dict(zip((each.text for each in reply.candidates), reply.scores))
        if reply.classes is not None or scores.keys() != set(distinct):
            text = f"'{model.name}' gives no scores to documents: it is not a ranker."
            raise Refusal(400, text, "model")
        order = sorted(range(len(documents)), key=lambda n: -scores[documents[n]])[:top]
        results = [
            {"index": n, "document": {"text": text}, "relevance_score": scores[text]}
            for n, text in zip(order, map(documents.__getitem__, order))
        ]
        usage = _usage([query, *documents])
        return _as_json({**_head("rerank", model), "results": results, "usage": usage})

    def _model(self, body: Body) -> ServedModel:
        names, name = ", ".join(self.models), body.get("model")
        if name is None and len(self.models) == 1:
            return next(iter(self.models.values()))
        if not isinstance(name, str):
            raise Refusal(400, f"'model' must be one of: {names}.", "model")
        if name not in self.models:
            text = f"There is no model {name[:99]!r} (there is: {names})."
            raise Refusal(404, text, "model", "model_not_found")
        return self.models[name]


def _head(kind: str, model: ServedModel) -> Dict[str, Any]:
    identity, now = f"{kind}-{IDENTITIES.getrandbits(128):032x}", int(time.time())
    return {"id": identity, "created": now, "model": model.name}


def _usage(asked: Sequence[str], said: Sequence[str] = ()) -> Dict[str, int]:
    """Words, because a model that chooses its replies writes no tokens."""
    n_asked, n_said = (sum(len(text.split()) for text in texts) for texts in (asked, said))
    total = n_asked + n_said
    return {"prompt_tokens": n_asked, "completion_tokens": n_said, "total_tokens": total}


async def _events(head: Body, choices: List[Body], usage: Any) -> AsyncIterator[str]:
    """Choices as server-sent events."""
    chunks: List[Body] = []
    for choice in choices:
        for delta, reason in ((choice.pop("message"), None), ({}, "stop")):
            chunks.append({"choices": [{**choice, "delta": delta, "finish_reason": reason}]})
    if usage is not None:
        chunks.append({"choices": [], "usage": usage})
    for chunk in chunks:
        yield f"data: {json.dumps({**head, 'object': 'chat.completion.chunk', **chunk})}\n\n"
    yield "data: [DONE]\n\n"
