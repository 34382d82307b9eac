"""The application of a server: its routes, and what they answer."""

import asyncio
import hmac
import json
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, List, Mapping, Optional, Sequence

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from ..config import PathLike
from ..errors import DialogError
from ..messages import PARTNER, Message
from ..training.trained_model import Answer, TrainedModel
from .chat_log import ChatLog
from .limits import Limits
from .metrics import Metrics
from .request_body import Refusal, choices_in, conversation_in, number_in, read_body, texts_in
from .served_model import LOG, ServedModel

Handler = Callable[[Request], Awaitable[Response]]
PAGE = Path(__file__).with_name("page.html")
# A call of the system for each identity, as uuid4 makes it, takes as long as reading a request.
IDENTITIES = random.Random()
# The page uses nothing but itself and this server.
POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; "
    "connect-src 'self'; img-src data:"
)


def build(
    models: Mapping[str, PathLike],
    given: Mapping[str, Any],
    threshold: Optional[float],
    api_keys: Sequence[str],
    cors: Sequence[str],
    log: Optional[PathLike],
    limits: Limits,
) -> Starlette:
    """Build the application; see ``serving.app``.

    given (Mapping[str, Any]): Further arguments of each ``TrainedModel``.
    """
    metrics, thread = Metrics(), ThreadPoolExecutor(1, "answering")
    served = {}
    for name, folder in models.items():
        load = partial(TrainedModel, folder, **given)
        served[name] = ServedModel(name, load, thread, limits.max_waiting, metrics)
    chats = None if log is None else ChatLog(log)
    keys, now = [key.encode() for key in api_keys], int(time.time())
    service = _Service(served, metrics, threshold, keys, chats, limits, now)
    gets = {"/v1/models": service.list_models, "/metrics": service.numbers}
    posts = {"/v1/chat/completions": service.chat, "/classify": service.classify}
    posts["/v1/rerank"] = service.rerank
    routes = [Route("/", _page), Route("/healthz", _health)]
    routes += [Route(path, service.guarded(handler)) for path, handler in gets.items()]
    routes += [Route(p, service.guarded(each), methods=["POST"]) for p, each in posts.items()]
    allowed: Any = {"allow_origins": list(cors), "allow_methods": ["*"], "allow_headers": ["*"]}
    middleware = [Middleware(CORSMiddleware, **allowed)] if cors else []
    handlers: Any = {HTTPException: _refused}
    return Starlette(routes=routes, middleware=middleware, exception_handlers=handlers)


async def _page(request: Request) -> Response:
    return FileResponse(PAGE, headers={"Content-Security-Policy": POLICY})


async def _health(request: Request) -> Response:
    return _as_json({"status": "ok"})


async def _refused(request: Request, error: HTTPException) -> Response:
    """An error of Starlette, such as an unknown path."""
    text = f"{request.method} {request.url.path}: {error.detail}."
    return _error(Refusal(error.status_code, text, headers=dict(error.headers or {})))


def _error(refusal: Refusal) -> Response:
    return _as_json(refusal.as_json(), refusal.status, refusal.headers)


def _as_json(content: Any, status: int = 200, headers: Optional[Dict[str, str]] = None) -> Response:
    # In ASCII, because lone surrogates have no UTF-8 form.
    return Response(json.dumps(content), status, headers, "application/json")


@dataclass
class _Service:
    """The models of an app, and its handlers; see ``serving.app``."""

    models: Mapping[str, ServedModel]
    metrics: Metrics
    threshold: Optional[float]
    api_keys: Sequence[bytes]
    log: Optional[ChatLog]
    limits: Limits
    began: int

    def guarded(self, handler: Handler) -> Handler:
        """A handler that asks for a key, answers what is refused, and is counted."""

        async def endpoint(request: Request) -> Response:
            began, path = time.perf_counter(), request.url.path
            try:
                self._check_key(request.headers.get("authorization", ""))
                response = await handler(request)
            except Refusal as refusal:
                response = _error(refusal)
            except DialogError as error:
                response = _error(Refusal(400, str(error)))
            except ClientDisconnect:
                response = Response(status_code=499)
            self.metrics.requests.labels(path, response.status_code).inc()
            self.metrics.seconds.labels(path).observe(time.perf_counter() - began)
            return response

        return endpoint

    def _check_key(self, given: str) -> None:
        key = given.removeprefix("Bearer ").encode()
        # All are compared, each in constant time.
        if self.api_keys and not sum(hmac.compare_digest(key, each) for each in self.api_keys):
            text = "Give a key of this server: Authorization: Bearer KEY."
            raise Refusal(401, text, code="invalid_api_key", headers={"WWW-Authenticate": "Bearer"})

    async def numbers(self, request: Request) -> Response:
        return Response(self.metrics.text(), headers={"Content-Type": CONTENT_TYPE_LATEST})

    async def list_models(self, request: Request) -> Response:
        about = {"object": "model", "created": self.began, "owned_by": "thincdialog"}
        return _as_json({"object": "list", "data": [{"id": name, **about} for name in self.models]})

    async def chat(self, request: Request) -> Response:
        """A chat completion: the reply, and further candidates as further choices."""
        body = await self._read(request)
        model, message = self._model(body), conversation_in(body, self.limits)
        n = choices_in(body)
        (said,) = await self._ask(model, [message], n)
        reply = model.model.read(said, n, self.threshold)
        turns = [*message["context"], (PARTNER, message["text"])]
        if self.log is not None:
            try:
                self.log.add(turns, reply.text or "")
            except OSError as error:  # A full disk is no reason to refuse an answer.
                self.metrics.unlogged.inc()
                LOG.error("a conversation was not logged: %s", error.strerror or error)
        best = reply.best[:n]
        head = {**_head("chatcmpl", model), "object": "chat.completion"}
        if reply.guess is not None:
            head["guess"] = {"text": reply.guess.text, "score": reply.guess.probability}
        usage = _usage((text for _, text in turns), (each.text for each in best))
        if body.get("stream"):
            options = body.get("stream_options")
            has_usage = isinstance(options, dict) and options.get("include_usage")
            head["object"] += ".chunk"
            events = _events(head, best, usage if has_usage else None)
            return StreamingResponse(events, media_type="text/event-stream")
        choices = [
            {**choice, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
            for choice, text in _choices(best)
        ]
        return _as_json({**head, "choices": choices, "usage": usage})

    async def classify(self, request: Request) -> Response:
        """The classes of texts."""
        body = await self._read(request)
        model, texts = self._model(body), texts_in(body, "input", self.limits)
        classes = model.model.agent.classes
        if not classes:
            text = f"'{model.name}' has no classes: use /v1/chat/completions or /v1/rerank."
            raise Refusal(400, text, "model")
        rows = []
        messages = [Message(text=text, agent="user") for text in texts]
        for index, said in enumerate(await self._ask(model, messages, len(classes))):
            reply = model.model.read(said, 1, self.threshold)
            known: Dict[str, Any] = dict(model.model.read(said, len(classes), 0.0).candidates)
            row = {"index": index, "label": reply.text, "probs": list(map(known.get, classes))}
            if reply.labels is not None:
                row["labels"] = [label.text for label in reply.labels]
            rows.append({**row, "num_classes": len(classes)})
        about = {"object": "list", "classes": list(classes), "data": rows}
        return _as_json({**_head("classify", model), **about, "usage": _usage(texts)})

    async def rerank(self, request: Request) -> Response:
        """The scores of documents for a query."""
        body = await self._read(request)
        model, query = self._model(body), " ".join(texts_in(body, "query", self.limits))
        documents = texts_in(body, "documents", self.limits)
        top = number_in(body, "top_n", 1, len(documents), len(documents))
        distinct, scores = list(dict.fromkeys(documents)), dict[str, float]()
        if not model.model.agent.has_classes:
            message = Message(text=query, label_candidates=distinct, agent="user")
            (said,) = await self._ask(model, [message], len(distinct))
            reply = model.model.read(said, len(distinct), 0.0)
            scores = dict(zip((each.text for each in reply.candidates), reply.scores))
        if scores.keys() != set(distinct):
            text = f"'{model.name}' gives no scores to documents: it is not a ranker."
            raise Refusal(400, text, "model")
        order = sorted(range(len(documents)), key=lambda n: -scores[documents[n]])[:top]
        results = [
            {"index": n, "document": {"text": text}, "relevance_score": scores[text]}
            for n, text in zip(order, map(documents.__getitem__, order))
        ]
        usage = _usage([query, *documents])
        return _as_json({**_head("rerank", model), "results": results, "usage": usage})

    async def _read(self, request: Request) -> Dict[str, Any]:
        """Receive the whole body of a request.

        RAISES (Refusal): If it is too large, too slow, or not a JSON object.
        """
        most, body = self.limits.max_body, bytearray()

        async def receive() -> None:
            async for chunk in request.stream():
                body.extend(chunk)
                if len(body) > most:
                    raise Refusal(413, f"The body has more than {most:,} bytes.")

        try:
            await asyncio.wait_for(receive(), self.limits.max_seconds)
        except asyncio.TimeoutError:
            raise Refusal(408, "The request did not arrive in time.") from None
        return read_body(bytes(body))

    def _model(self, body: Mapping[str, Any]) -> ServedModel:
        names, name = ", ".join(self.models), body.get("model")
        if name is None and len(self.models) == 1:
            return next(iter(self.models.values()))
        if not isinstance(name, str):
            raise Refusal(400, f"'model' must be one of: {names}.", "model")
        if name not in self.models:
            text = f"There is no model {name[:99]!r} (there is: {names})."
            raise Refusal(404, text, "model", "model_not_found")
        return self.models[name]

    async def _ask(self, model: ServedModel, messages: List[Message], top: int) -> List[Message]:
        if model.model.agent.reading().n_features:
            raise Refusal(400, f"'{model.name}' reads features, not text.", "model")
        return await model.ask(messages, top, self.limits.max_seconds)


def _head(kind: str, model: ServedModel) -> Dict[str, Any]:
    identity, now = f"{kind}-{IDENTITIES.getrandbits(128):032x}", int(time.time())
    return {"id": identity, "created": now, "model": model.name}


def _choices(best: Sequence[Answer]) -> Any:
    """Index and score of each choice, with its text."""
    for index, (text, probability) in enumerate(best):
        yield {"index": index, "score": probability}, text


def _usage(asked: Any, said: Any = ()) -> Dict[str, int]:
    """Words, because a model that chooses its replies writes no tokens."""
    n_asked, n_said = (sum(len(text.split()) for text in texts) for texts in (asked, said))
    total = n_asked + n_said
    return {"prompt_tokens": n_asked, "completion_tokens": n_said, "total_tokens": total}


async def _events(head: Any, best: Sequence[Answer], usage: Any) -> AsyncIterator[str]:
    """Choices as server-sent events."""
    chunks: List[Dict[str, Any]] = []
    for choice, text in _choices(best):
        for delta, reason in (({"role": "assistant", "content": text}, None), ({}, "stop")):
            chunks.append({"choices": [{**choice, "delta": delta, "finish_reason": reason}]})
    if usage is not None:
        chunks.append({"choices": [], "usage": usage})
    for chunk in chunks:
        yield f"data: {json.dumps({**head, **chunk})}\n\n"
    yield "data: [DONE]\n\n"
