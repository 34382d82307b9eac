"""``info``: show versions for a bug report, or describe a saved model."""

import argparse
import platform
from importlib import metadata
from typing import Any, Dict

from .. import __version__
from .arguments import argument, json_flag
from .output import messages, number_of, print_json, table

EXAMPLES = ["info", "info --json", "info output/quickstart/model-best"]

PACKAGES = ("thinc", "confection", "catalogue", "srsly", "numpy", "blis", "ml_datasets")
OPTIONAL = ("sentencepiece", "cupy-cuda12x", "cupy-cuda13x", "spacy", "torch")

ARGUMENTS = [
    argument("[MODEL]", "folder of a saved model"),
    json_flag("everything"),
]


def run(arguments: argparse.Namespace) -> None:
    """Show versions, or the facts of a saved model."""
    from ..files.saved_model import model_folder, read_consistently, read_meta
    from ..loggers.values import leaves

    model = arguments.model
    facts = _of_installation()
    if model:
        facts = read_consistently(model, lambda: read_meta(model_folder(model)))
    # Checksums are for programs, so only --json has them.
    shown = leaves({name: value for name, value in facts.items() if name != "files"})
    rows = [[name, number_of(name, x) if isinstance(x, float) else str(x)] for name, x in shown]
    if arguments.json:
        print_json(facts)
    else:
        print(table([["what", "value"], *rows], n_left=2))
    if not arguments.model:
        from ..registry import registry

        for known in registry.all_registries().values():
            for text in known.broken_entry_points():
                messages.warn(text)


def _of_installation() -> Dict[str, Any]:
    facts = {"thincdialog": __version__, "Python": platform.python_version()}
    facts["platform"] = platform.platform()
    for name in (*PACKAGES, *OPTIONAL):
        try:
            facts[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            if name in PACKAGES:
                facts[name] = "not installed"
    return facts
