"""Tokenizing: ``encode_many`` beside ``encode``, text by text, on real texts.

Turns of self_dialogue and the questions of CLINC150 from ../shared/data, each text once, in
random order, 512 at a time. The two take turns, both without words that they remember;
CPU seconds, medians of 5. The ids are compared first.

    python tests/benchmarks/bench_tokenizers.py
"""

import gzip
import json
import random
import statistics
import time
from pathlib import Path

import numpy as np

from thincdialog.data.tokenizers import HashNgramTokenizer, WordNgramTokenizer, WordTokenizer

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
N_REPEATS, N_TEXTS, BATCH = 5, 15_000, 512
# As in configs/starspace.cfg and configs/fasttext.cfg, and others.
TOKENIZERS = {
    "HashNgrams, 1": lambda: HashNgramTokenizer(n_rows=65536, ngrams=1),
    "HashNgrams, 2": lambda: HashNgramTokenizer(n_rows=65536, ngrams=2),
    "HashNgrams, 2, characters": lambda: HashNgramTokenizer(ngrams=2, char_ngrams=[3, 5]),
    "WordNgrams, 2": lambda: WordNgramTokenizer(n_rows=200_000, ngrams=2),
    "Words": lambda: WordTokenizer(min_freq=2),
}


def read_texts(name):
    texts = {}
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        for row in map(json.loads, file):
            turns = row.get("turns", [row])
            texts.update(dict.fromkeys(turn["text"] for turn in turns))
    return random.Random(0).sample(list(texts), min(len(texts), N_TEXTS))


def cpu_seconds(work, make, learnt):
    # A new one, that remembers nothing; what it learnt from texts comes along.
    tokenizer = make()
    if learnt is not None:
        tokenizer._set(learnt)
    start = time.thread_time()
    result = work(tokenizer)
    return time.thread_time() - start, result


def compare(make, texts):
    def one_by_one(tokenizer):
        return [tokenizer.encode(text) for text in texts]

    def together(tokenizer):
        starts = range(0, len(texts), BATCH)
        return [tokenizer.encode_many(texts[start : start + BATCH])[0] for start in starts]

    tokenizer = make()
    tokenizer.build(texts)
    learnt = getattr(tokenizer, "vocabulary", None)
    rounds = [
        [cpu_seconds(work, make, learnt) for work in (one_by_one, together)]
        for _ in range(N_REPEATS)
    ]
    for (_, one), (_, many) in rounds[:1]:
        assert np.array_equal(np.concatenate(one), np.concatenate(many))
    old, new = (
        statistics.median(each[work][0] for each in rounds) / len(texts) * 1e6 for work in (0, 1)
    )
    return old, new


def main():
    print(f"{'µs a text':42}{'encode':>10}{'encode_many':>14}")
    for name in ("self_dialogue/train.jsonl.gz", "clinc150/full/train.jsonl.gz"):
        if not (DATA / name).is_file():
            print(f"skipped: ../shared/data/{name} is not there")
            continue
        texts = read_texts(name)
        for title, make in TOKENIZERS.items():
            old, new = compare(make, texts)
            where = name.partition("/")[0]
            print(f"{where:16}{title:26}{old:10.2f}{new:14.2f}{old / new:8.1f} times as fast")


if __name__ == "__main__":
    main()
