"""Serve saved models over HTTP, with the protocol of OpenAI's chat completions."""

from functools import partial
from pathlib import Path
from typing import Any, Dict, Mapping, Optional, Sequence, Union

from ..config import CodeLike, Overrides, PathLike
from ..errors import DialogError, importing
from .limits import Limits

Models = Union[PathLike, Sequence[PathLike], Mapping[str, PathLike]]
DEFAULTS = Limits()


def app(
    models: Models,
    *,
    overrides: Overrides = None,
    code: CodeLike = None,
    threshold: Optional[float] = None,
    api_keys: Sequence[str] = (),
    cors: Sequence[str] = (),
    log: Optional[PathLike] = None,
    limits: Limits = DEFAULTS,
) -> Any:
    """Build an ASGI application that serves saved models in the protocol of OpenAI.

    models (Union[PathLike, Sequence, Mapping]): Folder of a model or run, a list of folders, or a
        dict from names to folders. Without a name, a model is named after its folder; the best
        model of a run is named after the run's folder.
    overrides (Optional[Mapping[str, Any]]): Config settings to change in all models.
    code (CodeLike): Python file or files that register functions that the agents need.
    threshold (Optional[float]): Probability below which the best reply is rejected; if None, the
        threshold of each model.
    api_keys (Sequence[str]): Valid API keys, one of which each request must have. If there are
        none, requests need no key.
    cors (Sequence[str]): Origins of web pages that may use the server; "*" for all.
    log (Optional[PathLike]): File to append all conversations to.
    limits (Limits): Limits on requests.
    RETURNS (ASGIApp): The application, which can be mounted in another one.
    RAISES (DialogError): If a folder is not a complete saved model, or if two models have the same
        name.
    RAISES (MissingPackageError): If Starlette or prometheus-client is missing.
    """
    with importing("serve", "A server"):
        from starlette.middleware.cors import CORSMiddleware
        from starlette.routing import Route, Router

        from .application import Service
    from ..training.trained_model import TrainedModel

    load = partial(TrainedModel, overrides=overrides, code=code, max_batch=limits.max_batch)
    loads: Any = {name: partial(load, folder) for name, folder in named_models(models).items()}
    service = Service(loads, threshold, api_keys, log, limits)
    # The router handles other calls of servers to applications, and refuses WebSockets.
    router = Router([Route("/{path:path}", service)], redirect_slashes=False)
    return CORSMiddleware(router, cors, ["*"], ["*"]) if cors else router


def named_models(models: Models) -> Dict[str, PathLike]:
    """Return models by name; see ``app``.

    RAISES (DialogError): If two models have the same name.
    """
    if isinstance(models, Mapping):
        return dict(models)
    names: Dict[str, PathLike] = {}
    for folder in [models] if isinstance(models, (str, Path)) else models:
        name, _, place = str(folder).rpartition("=")
        # Not resolved, so that a link that changes to another model is followed.
        path = Path(place).absolute()
        name = name or (path.parent if path.name in ("model-best", "model-last") else path).name
        if name in names:
            raise DialogError(f"Two models have the name '{name}': write NAME={path}.")
        names[name] = str(path)
    return names
