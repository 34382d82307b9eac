"""Ranking among many fixed candidates, compared with a full sort.

2,000 conversations are ranked among 50,000 candidates as in an evaluation, and `respond("hello")`
chooses from 20,000. In the same run, a stable sort of all scores takes turns with the package's
selection; the 100 best candidates must be the same, those with equal scores included.

    python tests/benchmarks/bench_ranking.py
"""

import io
import random
import time
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Callable, List, Tuple
from unittest.mock import patch

import numpy as np
from measuring import in_turns, medians, sized

from thincdialog.agents import ranking
from thincdialog.api import Batch, Chatbot, Message, load, train
from thincdialog.cli.output import table
from thincdialog.metrics.ranking import RANKED

N_CONVERSATIONS, N_CANDIDATES, N_IN_CHAT = sized((2_000, 50_000, 20_000), (50, 500, 500))
N_REPEATS, N_REPLIES, BATCH_SIZE = *sized((5, 200), (1, 5)), 64
WORDS = [f"w{number}" for number in range(400)]
CONFIG = """
[tasks.lines]
@teachers = "thincdialog.LabelledText.v1"
train = "{folder}/train.csv"

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.Ranker.v1"
fixed_candidates = "{folder}/candidates.txt"

[agent.model]
@models = "thincdialog.BiEncoder.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = 64

[training]
max_steps = 1
"""
# The texts of the best candidates, for each conversation.
Best = List[List[str]]


def full_sort(scores: np.ndarray, n: int) -> np.ndarray:
    """Select the n highest scores by a stable sort of all."""
    return np.argsort(-scores, kind="stable")[:n]


SELECTIONS = {"partition": ranking._highest, "full sort": full_sort}


def make_chatbot(n_candidates: int) -> Chatbot:
    """Make a model with weights that are almost random. Candidates are pairs of words, so that "w1
    w2" and "w2 w1" have the same score."""
    pairs = [f"{one} {other}" for one in WORDS for other in WORDS]
    rows = [f"{one},{other}" for one, other in zip(WORDS, WORDS[::-1])]
    with TemporaryDirectory() as name:
        folder = Path(name)
        candidates = random.Random(0).sample(pairs, n_candidates)
        (folder / "candidates.txt").write_text("\n".join(candidates))
        (folder / "train.csv").write_text("\n".join(["text,label", *rows]))
        (folder / "my.cfg").write_text(CONFIG.format(folder=folder))
        train(folder / "my.cfg", output=folder / "run", stdout=io.StringIO(), stderr=io.StringIO())
        return load(folder / "run")


def rank_all(chatbot: Chatbot) -> Tuple[float, Best]:
    """Return the seconds to rank the candidates for all conversations, and the best of each."""
    rng, agent = random.Random(1), chatbot.agent
    texts = [" ".join(rng.choices(WORDS, k=8)) for _ in range(N_CONVERSATIONS)]
    messages = [Message(text=text) for text in texts]
    starts = range(0, len(messages), BATCH_SIZE)
    batches = [Batch.of(messages[start : start + BATCH_SIZE]) for start in starts]
    best: Best = []
    with agent.evaluating():
        agent.answer(batches[0])  # Encodes the candidates.
        started = time.perf_counter()
        for batch in batches:
            best += [reply["text_candidates"] for reply in agent.answer(batch)]
        return time.perf_counter() - started, best


def respond(chatbot: Chatbot) -> Tuple[float, Best]:
    """Return the median milliseconds of a reply, and the best candidates."""
    taken = []
    for _ in range(N_REPLIES):
        chatbot.reset()
        started = time.perf_counter()
        chatbot.respond("hello")
        taken.append(time.perf_counter() - started)
    chatbot.reset()
    return 1000 * median(taken), [[each.text for each in chatbot.respond("hello", top=RANKED)]]


def compare(what: str, measure: Callable, n_candidates: int) -> List[str]:
    """Return the row of the table: what is measured, its median with each selection, and the
    ratio."""
    chatbot, best = make_chatbot(n_candidates), {}

    def measure_with(name: str) -> float:
        with patch.object(ranking, "_highest", SELECTIONS[name]):
            taken, best[name] = measure(chatbot)
        return taken

    ours, reference = medians(in_turns(SELECTIONS, measure_with, N_REPEATS)).values()
    assert best["partition"] == best["full sort"]
    return [what, f"{ours:.2f}", f"{reference:.2f}", f"{reference / ours:.1f}"]


def main() -> None:
    ranked = f"{N_CONVERSATIONS:,} conversations, {N_CANDIDATES:,} candidates, s"
    replied = f'respond("hello"), {N_IN_CHAT:,} candidates, ms'
    rows = [compare(ranked, rank_all, N_CANDIDATES), compare(replied, respond, N_IN_CHAT)]
    print(f"The best {RANKED} candidates of each conversation, medians of {N_REPEATS}")
    print(table([["", *SELECTIONS, "ratio"], *rows]))


if __name__ == "__main__":
    main()
