"""``convert``: write a data file in another format."""

import argparse

from .arguments import INPUT_TEXT, argument, listed, named, with_layouts
from .output import counted, messages

EXAMPLES = [
    "convert train.jsonl train.txt --to parlai",
    "convert chats/ chats.jsonl.gz --from whatsapp --to conversations",
    "convert chats.json chats.jsonl --from sharegpt --to conversations",
    "convert log.jsonl labelled.jsonl --from messages --label-field intent --to jsonl",
    "convert 'tickets-*.csv' tickets.jsonl --to jsonl --text-field body",
]

# The same names as in thincdialog.formats.formats and convert, whose import is slow.
NAMES = "parlai, fbdialog, babi, conversations, parlai-conversations, jsonl, csv, tsv"
TO = "parlai, conversations, jsonl"

ARGUMENTS = [
    argument("IN", "data file, folder, or pattern in quotes; files may be gzipped or zipped",
             dest="source"),
    argument("OUT", "output file; NAME.gz is gzip-compressed", dest="target"),
    argument("--from FORMAT", f"format of IN: {NAMES}; or a layout of "
             "thincdialog.JSONLayout.v1, such as sharegpt or my.yml (default: detected in IN)",
             suggest=lambda: with_layouts(NAMES), dest="from_format"),
    argument("--to FORMAT", f"format of OUT: {TO}", suggest=lambda: TO.split(", "),
             dest="to_format"),
    argument("--label-speaker WHO", "in conversations, the speaker whose turns are the labels: "
             "second, first, both, or a name", suggest=lambda: ("second", "first", "both")),
    argument("--text-field NAME", "field or column of the text", default="text"),
    argument("--label-field NAME", "field or column of the label (default: label); with a layout "
             "of conversations, the field is in the turn, in its answer or in the record"),
    *INPUT_TEXT,
    argument("--drop A,B", "fields to leave out, such as labels (keeps only the first label) or "
             "history (makes every turn a separate example)", listed, default=[],
             suggest=lambda: ("labels", "history")),
    argument("--skip", "leave out invalid rows, and episodes that the target format cannot hold"),
    argument("--force", "overwrite OUT"),
]  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    """Convert the file, and report the fields and rows that were left out."""
    from ..formats.convert import convert

    names = ("from_format", "to_format", "label_speaker", "text_field", "label_field", "drop")
    options = named(arguments, *names, "columns", "delimiter", "encoding", "skip", "force")
    done = convert(arguments.source, arguments.target, **options)
    if done.was_guessed:
        messages.info(f"{arguments.source} looks like {done.from_format}; if not, set --from")
    if done.left_out:
        kinds = [kind if n == 1 else f"{kind} ({n:,})" for kind, n in done.left_out.items()]
        messages.warn(f"Left out: {'; '.join(kinds)}")
    if done.bad is not None and done.bad.n_skipped:
        messages.warn(done.bad.summary())
    examples = counted(done.n_examples, done.unit)
    episodes = counted(done.n_episodes, "episode")
    messages.good(f"{arguments.target}: {episodes}, {examples}, as {done.to_format}")
