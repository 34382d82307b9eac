"""Texts with any number of labels, in a JSON list as in intent corpora."""

import json
import random

# Each label, and the words that express it.
WORDS = {
    "refund": ["money back", "refund"],
    "parcel": ["parcel", "box"],
    "late": ["late", "still waiting"],
    "thank": ["thanks", "cheers"],
}
LAYOUT = "text: text\nlabel: intents\n"
CONFIG = """
[tasks.topics]
@teachers = "thincdialog.JSONLayout.v1"
layout = "topics.yml"
train = "train.json"
dev = "dev.json"

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.MultiLabel.v1"

[agent.model]
@models = "thincdialog.Classifier.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = 16
pooling = "sum"

[world.batcher]
size = 16

[training]
max_epochs = 20
eval_every_epochs = 10
score = "micro_f1"
n_samples = 0

[training.optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.05
use_averages = true
"""


def topics(n, seed=0):
    """Make rows with zero to three labels, and with fields that are not read."""
    rng = random.Random(seed)
    rows = []
    for _ in range(n):
        intents = rng.sample(list(WORDS), rng.choice((0, 1, 1, 2, 2, 3)))
        said = [rng.choice(WORDS[name]) for name in intents] or ["well"]
        rows.append({"text": f"hello {' and '.join(said)}", "intents": intents, "slots": {}})
    return rows


def write_topics(folder, n_train=80, n_dev=40):
    """Write the files that ``CONFIG`` names."""
    (folder / "topics.yml").write_text(LAYOUT)
    for seed, (name, n) in enumerate([("train", n_train), ("dev", n_dev)]):
        (folder / f"{name}.json").write_text(json.dumps(topics(n, seed)))
