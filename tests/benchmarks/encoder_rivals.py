"""Run the same encoder in onnxruntime (float32), PyTorch (eager) and sentence-transformers, one
thread each. bench_pretrained.py runs this script in another Python.

    python encoder_rivals.py ENCODER TEXTS.json ROUNDS FOLDER

The last line is JSON: CPU seconds of each library that is installed, medians of the rounds; null
for a library that lacks a package. The ONNX model is written to FOLDER.
"""

import os

os.environ["OMP_NUM_THREADS"] = "1"

import json
import statistics
import sys
import time
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

BATCH = 32


def rectangles(texts, size):
    """Return the ids and masks of sorted texts, padded."""
    texts = sorted(texts, key=len)
    for first in range(0, len(texts), size):
        some = texts[first : first + size]
        ids = np.zeros((len(some), len(some[-1])), dtype=np.int64)
        for row, text in zip(ids, some):
            row[: len(text)] = text
        lengths = np.array([[len(text)] for text in some])
        yield ids, (np.arange(ids.shape[1]) < lengths).astype(np.int64)


def works(folder, texts, place):
    """Return the name and the work of each library that is installed; None instead of the work if
    it lacks a package."""
    torch, transformers = map(import_module, ("torch", "transformers"))
    torch.set_num_threads(1)
    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager").eval()
    encoded = transformers.AutoTokenizer.from_pretrained(folder)(texts)["input_ids"]

    def run_torch():
        with torch.inference_mode():
            for given in rectangles(encoded, BATCH):
                ids, mask = map(torch.from_numpy, given)
                model(input_ids=ids, attention_mask=mask)

    yield "PyTorch, eager", run_torch
    if find_spec("onnxruntime") and not find_spec("onnx"):
        yield "onnxruntime is skipped: it needs the package onnx, which is not installed", None
    with suppress(ImportError):
        import_module("onnx")
        runtime = import_module("onnxruntime")
        path, names = str(place / "model.onnx"), ["input_ids", "attention_mask"]
        example = tuple(map(torch.from_numpy, next(rectangles(encoded, BATCH))))
        axes = {name: {0: "texts", 1: "tokens"} for name in [*names, "vectors"]}

        class Vectors(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.model = model

            def forward(self, ids, mask):
                return self.model(input_ids=ids, attention_mask=mask).last_hidden_state

        torch.onnx.export(
            Vectors().eval(), example, path, input_names=names, output_names=["vectors"],
            dynamic_axes=axes, dynamo=False,
        )  # fmt: skip
        options = runtime.SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = runtime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

        def run_onnx(size):
            for given in rectangles(encoded, size):
                session.run(["vectors"], dict(zip(names, given)))

        yield "onnxruntime, one by one", lambda: run_onnx(1)
        yield f"onnxruntime, sorted, batches of {BATCH}", lambda: run_onnx(BATCH)
    with suppress(ImportError):
        library = import_module("sentence_transformers")
        sentences = library.SentenceTransformer(folder, device="cpu")
        yield "sentence-transformers", lambda: sentences.encode(texts, batch_size=BATCH)


def seconds_of(work, n_rounds):
    """Return the median, after a first run that does not count."""
    times = []
    for _ in range(n_rounds + 1):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return statistics.median(times[1:])


if __name__ == "__main__":
    folder, path, n_rounds, place = sys.argv[1:]
    texts = json.loads(Path(path).read_text("utf8"))
    found = {
        name: work and seconds_of(work, int(n_rounds))
        for name, work in works(folder, texts, Path(place))
    }
    print(json.dumps(found))
