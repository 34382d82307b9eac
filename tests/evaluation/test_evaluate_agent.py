"""Evaluation: the scores are the same for any batches, order and world."""

import pytest
from thinc.api import fix_random_seed

from tests.processes import slow
from thincdialog.api import Agent, IterableTeacher, Message, registry
from thincdialog.batchers import Batchsort, Fixed, Padded, Words
from thincdialog.evaluation.evaluate_agent import evaluate_agent
from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.worlds import BatchWorld

METRICS = ("thincdialog.Accuracy.v1", "thincdialog.F1.v1", "thincdialog.Ranking.v1")
WORLDS = ("BatchWorld", "DynamicBatchWorld")
WORDS = "red green amber blue tea milk cup here there now".split()


def conversations(n=12):
    """Make conversations of several turns. Some replies have the same words in a different order,
    so a bag of embeddings gives them equal scores."""
    return [
        [
            {
                "id": f"{number}/{turn}",
                "text": " ".join(WORDS[(number * k + turn) % 10] for k in (1, 3, 7)),
                "labels": [" ".join(WORDS[(number + turn * k) % 10] for k in (2, 5, 3))],
            }
            for turn in range(1 + number % 4)
        ]
        for number in range(n)
    ]


def task(episodes, **options):
    return IterableTeacher({"train": conversations(), "test": episodes}, **options)


def make_agent(kind, encoder):
    fix_random_seed(0)
    with using_ops(get_dialog_ops(-1)):
        model = registry.models.get(f"thincdialog.{encoder}.v1")(width=48)
        around = "BiEncoder" if kind == "Ranker" else "Classifier"
        model = registry.models.get(f"thincdialog.{around}.v1")(model)
        agent = registry.agents.get(f"thincdialog.{kind}.v1")(model)
        tokenizer = registry.tokenizers.get("thincdialog.Words.v1")()
        train = task([]).for_split("train", training=True)
        agent.initialize(train, tokenizer=tokenizer, seed=0)
    # Change the initial weights, with which a classifier gives all classes the same score.
    optimizer = registry.optimizers.get("Adam.v1")(0.01)
    with BatchWorld(train, agent, Fixed(8)) as world:
        agent.begin_microbatch(0, 0, 0)
        world.parley()
        agent.update(optimizer)
    return agent


def teacher_of(episodes, **options):
    teacher = task(episodes, **options).for_split("test", n_candidates=20)
    teacher.set_metrics([registry.metrics.get(name)() for name in METRICS])
    return teacher


def batches(batcher, world="BatchWorld"):
    return registry.worlds.get(f"thincdialog.{world}.v1")(batcher)


ALL_BATCHERS = [
    *(Fixed(size) for size in (1, 2, 7, 99)),
    *(Batchsort(size, buffer) for size, buffer in ((1, 3), (4, 1), (5, 256))),
    *(Words(budget, padding) for budget in (1, 25, 500) for padding in (True, False)),
    *(Padded(budget, buffer) for budget, buffer in ((1, 1), (60, 2), (500, 256))),
]
ALL_WORLDS = [
    *(batches(batcher, world) for batcher in ALL_BATCHERS for world in WORLDS),
    registry.worlds.get("thincdialog.PartnerWorld.v1")(),
]


@pytest.mark.parametrize(
    "kind, encoder",
    [
        ("Ranker", "BagEncoder"),
        slow("Ranker", "CNNEncoder"),
        slow("Ranker", "BiLSTMEncoder"),
        slow("Classifier", "BagEncoder"),
        slow("Classifier", "MemoryReader"),
    ],
)
def test_evaluation_is_bit_for_bit_the_same_for_any_world_order_and_flattening(kind, encoder):
    agent = make_agent(kind, encoder)
    episodes = conversations()
    n_examples = sum(map(len, episodes))
    expected = evaluate_agent(agent, teacher_of(episodes), batches(Fixed(64)))
    assert expected["examples"] == n_examples
    assert 0 < expected["mrr"] < 1 and expected["loss"] > 0
    for world in ALL_WORLDS:
        assert evaluate_agent(agent, teacher_of(episodes), world) == expected
    # Flattened data, and data in other orders. The order of the data decides which candidates are
    # drawn, so examples in other orders bring the same candidates.
    flat = registry.mutators.get("thincdialog.Flatten.v1")()
    for world in ALL_WORLDS:
        teacher = teacher_of(episodes, mutators=[flat])
        assert teacher.is_single_turn
        assert evaluate_agent(agent, teacher, world) == expected
    drawn = [[dict(example) for example in episode] for episode in episodes]
    for example in teacher_of(episodes).examples():
        number, turn = map(int, example["id"].split("/"))
        drawn[number][turn]["label_candidates"] = example["label_candidates"]
    for order in (drawn, drawn[::-1], drawn[1::2] + drawn[::2]):
        assert evaluate_agent(agent, teacher_of(order), batches(Batchsort(7))) == expected


def test_evaluation_of_a_ranker_is_against_fixed_candidates_not_the_batch():
    agent = make_agent("Ranker", "BagEncoder")
    assert agent.candidates == "batch" and len(agent.fixed) > 20
    episodes = [[{"text": text, "labels": [label]}] for text, label in zip(WORDS, agent.fixed)]
    teacher = task(episodes).for_split("test")
    teacher.set_metrics([registry.metrics.get(name)() for name in METRICS])
    expected = evaluate_agent(agent, teacher, batches(Fixed(1)))
    # Each reply is ranked against all of them. In a batch of one there is only the label.
    assert expected["hits@1"] < 1 and expected["mrr"] < 0.9
    for world in ALL_WORLDS:
        assert evaluate_agent(agent, teacher, world) == expected
        with world(teacher, agent.clone()) as run:
            run.start_epoch(0, 0)
            run.parley()
            replies = [run.acts[1]] if isinstance(run.acts[1], dict) else run.acts[1]
            assert {len(reply["text_candidates"]) for reply in replies} == {len(agent.fixed)}


def test_evaluation_does_not_change_the_conversation_of_a_training():
    agent = make_agent("Ranker", "BagEncoder")
    partner = registry.worlds.get("thincdialog.PartnerWorld.v1")()
    with partner(task([]).for_split("train", training=True), agent) as world:
        while len(agent.conversation) < 2:
            world.parley()
        turns = list(agent.conversation)
        evaluate_agent(agent, teacher_of(conversations()), partner)
        assert agent.conversation == turns
        world.parley()


@pytest.mark.parametrize("world", WORLDS)
def test_evaluation_asks_the_agent_itself_for_whole_batches(world):
    class Sharing(Agent):
        """An agent whose copies know less than the original. All of them count rows in one
        shared list."""

        def __init__(self):
            self.replies = {"ask 0": "answer 0"}
            self.n_rows = [0]

        def share(self):
            return {"n_rows": self.n_rows}

        def batch_act(self, observations):
            self.n_rows[0] += len(observations)
            return [Message(text=self.replies.get(m["text"], "no")) for m in observations]

    episodes = [[{"text": f"ask {turn}", "labels": [f"answer {turn}"]}] * 2 for turn in range(3)]
    agent = Sharing()
    for batcher in (Fixed(2), Batchsort(2)):
        report = evaluate_agent(agent, teacher_of(episodes), batches(batcher, world))
        assert report["accuracy"] == pytest.approx(1 / 3)
    assert agent.n_rows == [12]


def test_evaluation_restores_fast_products_and_encodes_candidates_again():
    agent, found = make_agent("Ranker", "BagEncoder"), []
    encode = agent._encode_candidates
    agent._encode_candidates = lambda texts: found.append(texts) or encode(texts)
    for _ in range(2):
        evaluate_agent(agent, teacher_of(conversations()), batches(Fixed(16)))
        assert not agent.model.ops.has_exact_products
    assert found == 2 * found[: len(found) // 2]
