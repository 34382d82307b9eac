"""Saved models over HTTP, in the protocol of OpenAI's chat completions."""

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

    models (Union[PathLike, Sequence, Mapping]): Folder of a model or run, or several, or names with
        folders. Without a name, a model has the name of its folder, the best of a run that of the
        run.
    overrides (Optional[Mapping[str, Any]]): Changes to the configs of all models.
    code (CodeLike): Python file, or several, registering functions that their agents need.
    threshold (Optional[float]): The best reply is rejected if it is less probable; the threshold
        of each model if None.
    api_keys (Sequence[str]): A request must have one of these keys; no keys: it needs none.
    cors (Sequence[str]): Origins of web pages that may use the server; "*" for all.
    log (Optional[PathLike]): File to append all conversations to.
    limits (Limits): How much is accepted.
    RETURNS (ASGIApp): The application; it can be mounted in another one.
    RAISES (DialogError): If a folder is not a whole saved model, or two have the same name.
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
    # It knows what servers ask of applications besides requests, and refuses WebSockets.
    router = Router([Route("/{path:path}", service)], redirect_slashes=False)
    return CORSMiddleware(router, cors, ["*"], ["*"]) if cors else router


def named_models(models: Models) -> Dict[str, PathLike]:
    """Give each model a name; see ``app``.

    RAISES (DialogError): If two have the same name, or there is none.
    """
    if isinstance(models, Mapping):
        return dict(models)
    names: Dict[str, PathLike] = {}
    for folder in [models] if isinstance(models, (str, Path)) else models:
        name, _, place = str(folder).rpartition("=")
        path = Path(place).absolute()  # A link that leads to another model is followed.
        name = name or (path.parent if path.name in ("model-best", "model-last") else path).name
        if name in names:
            raise DialogError(f"Two models have the name '{name}': write NAME={path}.")
        names[name] = str(path)
    return names
