"""``distill``: make a table of word vectors from a published encoder."""

import argparse
import json

from .arguments import ENCODING, argument, command_line, input_format, named
from .output import counted, messages

EXAMPLES = ["distill minilm --texts train.jsonl -o words"]

ABOUT = """
Encodes each word of the texts separately, keeps the principal components, and gives frequent words
less weight. The table is a folder in the layout of Model2Vec. thincdialog.WordVectors.v1
initialises the embeddings of a ranker or classifier with it."""

ARGUMENTS = [
    argument("ENCODER", "folder of a published encoder: config.json, tokenizer.json, "
             "model.safetensors"),
    argument("--texts FILE", "file, folder, or pattern in quotes, as predict reads it",
             required=True),
    argument("-o --output FOLDER", "folder for the table", required=True),
    argument("--width N", "numbers in each vector", int, 256),
    input_format("detected in the file"),
    argument("--text-field NAME", "field or column of the text", default="text"),
    ENCODING,
]  # fmt: skip


def run(arguments: argparse.Namespace) -> None:
    """Distill, and show how to use the table."""
    from ..api import distill

    options = named(arguments, "encoder", "texts", "output", "width", "format", "text_field")
    done = distill(**options, encoding=arguments.encoding)
    kept = f"{100 * done.explained:.1f} % of the variance"
    words = counted(done.n_words, "word")
    messages.good(f"{done.folder}: vectors of {words}, {done.width} wide, {kept}")
    table = json.dumps({"@initializers": "thincdialog.WordVectors.v1", "path": str(done.folder)})
    line = command_line("train", "ranker.cfg", "--agent.model.encoder.init_E", table)
    messages.info(f"Train a ranker with these vectors: {line}")
