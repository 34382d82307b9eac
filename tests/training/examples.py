"""A small task and config with which several tests train, and helpers for that."""

import io
import json

from thincdialog.api import train

RANKER = """
[paths]
train = null
dev = null
test = null

[system]
seed = 3

[tasks.coffee]
@teachers = "thincdialog.CoffeeOrder.v1"
n_train = 34
n_dev = 10
n_test = 10

[tasks.coffee.mutators.*.flatten]
@mutators = "thincdialog.Flatten.v1"

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.Ranker.v1"
candidates = "inline"

[agent.model]
@models = "thincdialog.BiEncoder.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = 16
dropout = 0.2

[world]
@worlds = "thincdialog.BatchWorld.v1"

[world.batcher]
@batchers = "thincdialog.Fixed.v1"
size = 16

[training]
max_epochs = 2.0
score = "hits@1"
n_samples = 1

[training.optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.01
"""
# Conversations in three files. Tests that append keys add them to the task.
TALKS = """
[paths]
train = "train.jsonl"
dev = "dev.jsonl"
test = "test.jsonl"

[tasks.talk]
@teachers = "thincdialog.Conversations.v1"
train = ${paths.train}
dev = ${paths.dev}
test = ${paths.test}
"""
# The rest of a config after its tasks, for replies.
REPLIES = """
[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.Ranker.v1"

[agent.model]
@models = "thincdialog.BiEncoder.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = 16
"""
# The rest of a config after its tasks, for labelled texts.
CLASSIFIER = """
[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.Classifier.v1"

[agent.model]
@models = "thincdialog.Classifier.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
"""


def with_agent(text, *lines):
    """Return the config of a ranker with more lines in its agent's section."""
    head, name, rest = text.partition('@agents = "thincdialog.Ranker.v1"\n')
    return head + name + "".join(f"{line}\n" for line in lines) + rest


def write_talks(path, pairs, name="talk"):
    """Write conversations of two turns: one by "a", and the reply by "b"."""
    turns = ([{"speaker": who, "text": text} for who, text in zip("ab", pair)] for pair in pairs)
    rows = ({"id": f"{name}{n}", "turns": each} for n, each in enumerate(turns))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def weights(folder, name="model-last"):
    """Return the bytes of the weights that a run has saved."""
    return (folder / name / "weights.npy").read_bytes()


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    encoding = "utf-8"

    def isatty(self):
        return True


def quietly_train(config=RANKER, output=None, *, stderr=None, force=False, resume=False, code=None,
                  **overrides):  # fmt: skip
    """Train. RETURNS the result, and the text of stderr.

    overrides: "section__key" (or dotted) to value.
    """
    stderr = stderr or io.StringIO()
    changes = {name.replace("__", "."): value for name, value in overrides.items()}
    options = {"force": force, "resume": resume, "code": code, "stderr": stderr}
    result = train(config, output=output, overrides=changes, stdout=io.StringIO(), **options)
    return result, stderr.getvalue()
