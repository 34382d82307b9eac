"""Results as JSON on stdout."""

import argparse
import json
from typing import Any


def add_json(parser: Any, what: str) -> None:
    """--json, a flag.

    what (str): What is printed then.
    """
    parser.add_argument("--json", action="store_true", help=f"print {what} as JSON")


def add_json_file(parser: argparse.ArgumentParser, what: str) -> None:
    """--json [FILE]; without a name, it is "-".

    what (str): What is written then.
    """
    parser.add_argument(
        "--json",
        metavar="FILE",
        nargs="?",
        const="-",
        help=f"write {what} to a file, or to stdout",
    )


def print_json(value: Any, indent: Any = 2) -> None:
    """Print a value as JSON that any reader takes: numbers that are not finite become null.

    indent (Optional[int]): None for one line.
    """
    from ..loggers.row_file import finite

    print(json.dumps(finite(value), indent=indent, ensure_ascii=False, default=_plain))


def add_jsonl(parser: argparse.ArgumentParser) -> None:
    """--jsonl, a flag."""
    parser.add_argument("--jsonl", action="store_true", help="one JSON object on a line")


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else str(value)
