"""``chats``: extract whole conversations from a log, to train on them."""

import argparse

from .arguments import argument
from .output import counted, messages

EXAMPLES = ["chats log.jsonl chats.jsonl"]

ABOUT = """
A log has one line per reply, which contains the conversation up to this reply. OUT contains only
the longest line of each conversation. To train with OUT, use thincdialog.JSONLayout.v1 with
layout = "messages"."""

ARGUMENTS = [
    argument("LOG", "log of serve --log or chat --log", dest="source"),
    argument("OUT", "output file; NAME.gz is gzip-compressed", dest="target"),
    argument("--force", "overwrite OUT"),
]


def run(arguments: argparse.Namespace) -> None:
    """Write the longest line of each conversation."""
    from ..formats.chat_log import keep_longest

    n_read, n_kept, n_bad = keep_longest(arguments.source, arguments.target, arguments.force)
    kept = counted(n_kept, "conversation")
    messages.good(f"Wrote {arguments.target}: {kept}, of {counted(n_read, 'line')}")
    if n_bad:
        messages.warn(f"{counted(n_bad, 'line')} of {arguments.source} left out: not valid JSON")
