"""``convert``: write a data file in another format."""

import argparse
import sys
from typing import Dict, Iterable, List

from .arguments import suggest
from .output import Messages, counted

EXAMPLES = [
    "convert parlai_train.txt train.jsonl.gz --to conversations",
    "convert sgd.jsonl.gz sgd.txt --to parlai --label-speaker system",
    "convert chats.json chats.jsonl --from sharegpt --to conversations",
    "convert tickets.csv tickets.jsonl --from csv --to jsonl --text-field body",
]

# The names in thincdialog.formats.formats, whose import would take its time.
NAMES = "parlai, fbdialog, babi, conversations, parlai-conversations, jsonl, csv, tsv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("source", metavar="IN", help="data file, plain or gzip'd")
    parser.add_argument("target", metavar="OUT", help="file to write; NAME.gz is compressed")
    source = parser.add_argument(
        "--from", dest="from_format", metavar="FORMAT",
        help=f"format of IN, told by the file if not given: {NAMES}; or a layout of "
        "thincdialog.JSONLayout.v1, such as sharegpt or my.yml")  # fmt: skip
    suggest(source, _sources)
    target = parser.add_argument("--to", dest="to_format", metavar="FORMAT",
                                 help="format of OUT; may be left out for .csv "
                                 "and .tsv")  # fmt: skip
    suggest(target, lambda: NAMES.split(", "))
    speaker = parser.add_argument(
        "--label-speaker", metavar="WHO",
        help="of conversations: whose turns are the labels (second, first, both, or a "
        "speaker's name)")  # fmt: skip
    suggest(speaker, lambda: ("second", "first", "both"))
    parser.add_argument("--text-field", metavar="NAME", default="text",
                        help="field or column of the text in labelled text")  # fmt: skip
    parser.add_argument("--label-field", metavar="NAME", default="label",
                        help="field or column of the label in labelled text")  # fmt: skip
    drop = parser.add_argument("--drop", metavar="A,B", default="",
                               help="fields to leave out; labels: all but the first; history: "
                               "each turn becomes an example of its own; blanks: at the ends "
                               "of lines")  # fmt: skip
    suggest(drop, lambda: ("labels", "history", "blanks"))
    parser.add_argument("--skip", action="store_true",
                        help="leave out episodes that the format cannot hold")  # fmt: skip
    parser.add_argument("--force", action="store_true", help="replace a file that is there")


def _sources() -> Iterable[str]:
    from ..formats.layout_file import shipped_layouts

    return (*NAMES.split(", "), *shipped_layouts())


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Convert, and say what was left out."""
    from ..formats.convert import convert

    done = convert(
        arguments.source,
        arguments.target,
        from_format=arguments.from_format,
        to_format=arguments.to_format,
        label_speaker=arguments.label_speaker,
        text_field=arguments.text_field,
        label_field=arguments.label_field,
        drop=[name.strip() for name in arguments.drop.split(",") if name.strip()],
        skip=arguments.skip,
        force=arguments.force,
    )
    messages = Messages(sys.stderr)
    if done.was_guessed:
        messages.info(f"{arguments.source} looks like {done.from_format}; if not, say --from")
    if done.left_out:
        kinds: List[str] = [
            kind if count == 1 else f"{kind} ({count:,})" for kind, count in done.left_out.items()
        ]
        messages.warn(f"There is no place for: {'; '.join(kinds)}")
    if done.n_skipped:
        skipped = counted(done.n_skipped, "episode")
        messages.warn(f"{skipped} skipped; the first: {done.first_skipped}")
    between = "conversations" in done.from_format and "conversations" in done.to_format
    examples = counted(done.n_examples, "turn" if between else "example")
    episodes = counted(done.n_episodes, "episode")
    messages.good(f"{arguments.target}: {episodes}, {examples}, as {done.to_format}")
    return 0
