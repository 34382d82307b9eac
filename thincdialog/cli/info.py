"""``info``: versions for a report of a mistake, or what a saved model is."""

import argparse
import platform
import sys
from importlib import metadata
from typing import Any, Dict, List

from .. import __version__
from .json_output import add_json, print_json
from .output import Messages, number_of, table

EXAMPLES = ["info", "info --markdown", "info --json", "info output/quickstart/model-best"]

PACKAGES = ("thinc", "confection", "catalogue", "srsly", "numpy", "blis", "ml_datasets")
OPTIONAL = ("sentencepiece", "cupy-cuda12x", "cupy-cuda13x", "spacy", "torch")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's options."""
    parser.add_argument("model", metavar="MODEL", nargs="?", help="folder of a saved model")
    forms = parser.add_mutually_exclusive_group()
    forms.add_argument("--markdown", action="store_true", help="as a Markdown list")
    add_json(forms, "all of it")


def run(arguments: argparse.Namespace, overrides: Dict[str, str]) -> int:
    """Show versions, or the facts of a saved model."""
    facts = _of_model(arguments.model) if arguments.model else dict(_of_installation())
    # Checksums are for programs: --json has them.
    rows = _flatten({name: value for name, value in facts.items() if name != "files"}, "")
    if arguments.json:
        print_json(facts)
    elif arguments.markdown:
        print("\n".join(f"- **{name}:** {value}" for name, value in rows))
    else:
        print(table([["what", "value"], *rows], n_left=2))
    if not arguments.model:
        from ..registry import registry

        for known in registry.all_registries().values():
            for text in known.broken_entry_points():
                Messages(sys.stderr).warn(text)
    return 0


def _of_installation() -> List[List[str]]:
    rows = [
        ["thincdialog", __version__],
        ["Python", platform.python_version()],
        ["platform", platform.platform()],
    ]
    for name in (*PACKAGES, *OPTIONAL):
        try:
            rows.append([name, metadata.version(name)])
        except metadata.PackageNotFoundError:
            if name in PACKAGES:
                rows.append([name, "not installed"])
    return rows


def _of_model(folder: str) -> Dict[str, Any]:
    from pathlib import Path

    from ..files.saved_model import read_meta

    return read_meta(Path(folder))


def _flatten(value: Any, name: str) -> List[List[str]]:
    if not isinstance(value, dict):
        return [[name, number_of(name, value) if isinstance(value, float) else str(value)]]
    parts = []
    for key, inner in value.items():
        parts += _flatten(inner, f"{name}.{key}" if name else key)
    return parts
