"""``serve``: serve saved models over HTTP."""

import argparse

from .arguments import GPU, LOG, THRESHOLD, argument, common, named, number, positive
from .output import messages

EXAMPLES = [
    "serve output/ranker/model-best",
    "serve output/ranker output/intent --port 8080 --workers 2",
    "serve barista=output/quickstart --api-key-file keys.txt --log chats.jsonl",
]

ABOUT = """
The server speaks OpenAI's protocol (/v1/models and /v1/chat/completions). It also answers at
/classify and /v1/rerank, and has a chat page at /, a health check at /healthz, and /metrics for
Prometheus. On SIGTERM, the server answers the waiting requests, then stops. If you replace a model
folder, the server loads the new model without a restart."""

LIMITS = {
    "max_batch": "maximum number of tokens in a batch, including padding (default: 8,192)",
    "max_body": "maximum number of bytes of a request (default: 1,048,576)",
    "max_messages": "maximum number of messages, texts or documents of a request (default: 1,000)",
    "max_characters": "maximum number of characters of all texts of a request (default: 200,000)",
    "max_waiting": "maximum number of waiting requests; more are refused (default: 4,096)",
    "max_seconds": "maximum number of seconds to receive and answer a request (default: 30)",
}


ARGUMENTS = [
    argument("MODEL...", "folders of saved models or runs; NAME=FOLDER sets a name", dest="models"),
    argument("--host HOST", "address to listen on", default="127.0.0.1"),
    argument("--port N", "port to listen on, 0 for a free one", number(int, 0, 65_535), 8000),
    argument("--workers N", "number of processes, each with its own models", positive, 1),
    THRESHOLD,
    argument("--api-key-file FILE", "file of keys, one per line; a request must have one of them"),
    argument("--cors ORIGIN", "origin of web pages that may use the server, * for all; repeat it "
             "for several", action="append", default=[]),
    LOG,
    *(argument(f"--{name.replace('_', '-')} N", about, positive)
      for name, about in LIMITS.items()),
    GPU,
]  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    """Serve until a signal ends it."""
    from ..formats.candidates import read_list
    from ..serving import Limits
    from ..serving.server import serve

    options = common(arguments, "threshold", "cors", "log")
    path = arguments.api_key_file
    options["api_keys"] = read_list(path) if path else []
    given = {name: value for name, value in named(arguments, *LIMITS).items() if value is not None}
    options["limits"] = Limits(**given)
    options["models"] = arguments.models
    serve(arguments.host, arguments.port, arguments.workers, options, _started)


def _started(url: str) -> None:
    messages.good(f"Serving at {url} (Ctrl-C to stop)")
