"""Compare ``encode_many`` with ``encode``, text by text, on real texts.

The texts are turns of self_dialogue and the questions of CLINC150 from ../shared/data, each text
once, in random order, 512 at a time. The two take turns, both with empty caches of words. Printed
are CPU seconds, medians of 5. The ids are compared first.

    python tests/benchmarks/bench_tokenizers.py
"""

import random

import numpy as np
from measuring import DATA, cpu_seconds, has_data, in_turns, medians, read_rows, sized

from thincdialog.data.tokenizers import HashNgramTokenizer, WordNgramTokenizer, WordTokenizer

N_REPEATS, N_TEXTS, BATCH = sized(5, 1), 15_000, 512
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
    for row in read_rows(DATA / name):
        texts.update(dict.fromkeys(turn["text"] for turn in row.get("turns", [row])))
    return random.Random(0).sample(list(texts), min(len(texts), N_TEXTS))


def compare(make, texts):
    """Return the microseconds per text, one by one and together."""

    def one_by_one(tokenizer):
        return [tokenizer.encode(text) for text in texts]

    def together(tokenizer):
        starts = range(0, len(texts), BATCH)
        return [tokenizer.encode_many(texts[start : start + BATCH])[0] for start in starts]

    def fresh():
        """Make a tokenizer with an empty cache."""
        tokenizer = make()
        tokenizer.build(texts)
        return tokenizer

    assert np.array_equal(np.concatenate(one_by_one(fresh())), np.concatenate(together(fresh())))

    def microseconds(work):
        tokenizer = fresh()
        return cpu_seconds(lambda: work(tokenizer))[0] / len(texts) * 1e6

    return medians(in_turns((one_by_one, together), microseconds, N_REPEATS)).values()


def main():
    print(f"{'µs a text':42}{'encode':>10}{'encode_many':>14}")
    for name in ("self_dialogue/train.jsonl.gz", "clinc150/full/train.jsonl.gz"):
        if not has_data(name):
            continue
        texts = read_texts(name)
        for title, make in TOKENIZERS.items():
            old, new = compare(make, texts)
            where = name.partition("/")[0]
            print(f"{where:16}{title:26}{old:10.2f}{new:14.2f}{old / new:8.1f} times as fast")


if __name__ == "__main__":
    main()
