"""Run the application of saved models, in one process or in several."""

import os
import signal
import socket
import tempfile
from functools import partial
from typing import Any, Callable, Dict

from ..errors import DialogError, importing
from . import app


def serve(
    host: str, port: int, workers: int, options: Dict[str, Any], started: Callable[[str], None]
) -> None:
    """Serve models until SIGTERM or SIGINT; then answer waiting requests, and return.

    host (str): Name or address to listen on.
    port (int): Port to listen on; 0 for a free one.
    workers (int): Number of processes, each with its own copy of the models.
    options (Dict[str, Any]): Arguments of ``app``, which must be picklable.
    started (Callable[[str], None]): Called with the URL after all models are loaded.
    RAISES (DialogError): If a model cannot be loaded, or the port is in use.
    RAISES (MissingPackageError): If Uvicorn is missing.
    """
    with importing("serve", "A server"):
        import uvicorn
        from uvicorn.supervisors import Multiprocess

        from .connection import Connection
        from .metrics import FOLDER
    name, family = (f"[{host}]", socket.AF_INET6) if ":" in host else (host, socket.AF_INET)
    try:
        listening = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        raise DialogError(f"Cannot listen on {name}:{port}: {error.strerror}.") from None
    with listening, tempfile.TemporaryDirectory() as counts:
        # Connections inherit this option. Without it, a response body waits 40 ms for an ACK of the
        # client.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, True)
        application = app(**options)
        if workers > 1:
            os.environ[FOLDER], application = counts, partial(app, **options)
        config = uvicorn.Config(
            application,
            factory=workers > 1,
            http=Connection,
            workers=workers,
            log_config=None,
            timeout_keep_alive=int(options["limits"].max_seconds),
            timeout_graceful_shutdown=int(options["limits"].max_seconds) + 1,
            # A worker that takes longer to import would be killed, and so would its successors.
            timeout_worker_healthcheck=60,
        )
        if workers > 1:
            # This installs its signal handlers now.
            run = Multiprocess(config, sockets=[listening]).run
        else:
            server = uvicorn.Server(config)
            run = partial(server.run, sockets=[listening])
            # ``run`` installs its signal handlers a little later, and sends signals again after all
            # requests are answered.
            for number in (signal.SIGTERM, signal.SIGINT):
                signal.signal(number, server.handle_exit)
        started(f"http://{name}:{listening.getsockname()[1]}")
        run()
