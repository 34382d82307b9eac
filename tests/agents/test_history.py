"""A live conversation and a flattened one look the same to a model."""

from typing import Dict, List

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from thincdialog.agents.conversation import ConversationAgent
from thincdialog.batchers import Fixed
from thincdialog.data import TextEncoder
from thincdialog.examples import Batch
from thincdialog.messages import SILENCE, Message, MessageBatch
from thincdialog.mutators.flatten import Flatten
from thincdialog.registry import registry
from thincdialog.teachers.iterable import IterableTeacher
from thincdialog.worlds import BatchWorld, PartnerWorld

words = st.sampled_from(["a", "b", "c d", "", "e f g", SILENCE])
turns = st.tuples(words, st.lists(words.filter(lambda text: text != SILENCE), min_size=1))
episodes = st.lists(st.lists(turns, min_size=1, max_size=5), min_size=1, max_size=6)


class Reader(ConversationAgent):
    """Answers with its number of turns, and keeps the token ids of its input."""

    def __init__(self, encoder: TextEncoder, **options):
        super().__init__(**options)
        self.encoder = encoder
        self.inputs: Dict[str, np.ndarray] = {}

    def batch_act(self, observations):
        batch = Batch.of(observations)
        rows, lengths = self.encoder.contexts(batch)
        starts = lengths.cumsum()[:-1]
        for name, ids in zip(batch.ids(), np.split(rows, starts)):
            assert name not in self.inputs
            self.inputs[name] = ids
        turns = batch.turns(self.history_size)
        return [Message(text=f"{len(each)} turns") for each in turns]


def tokenizer():
    built = registry.tokenizers.get("thincdialog.Characters.v1")()
    built.build(["abcdefg_SILEN"])
    return built


TOKENIZER = tokenizer()


def read(data: List, world: str, training: bool, encoding: Dict, mutators=(), **options):
    given = [
        [{"text": text, "labels": labels} for text, labels in conversation] for conversation in data
    ]
    teacher = IterableTeacher({"test": given}, mutators=list(mutators))
    teacher = teacher.for_split("test", training=training)
    history_size = options.get("history_size", -1)
    encoder = TextEncoder(TOKENIZER, history_size=history_size, **encoding)
    agent = Reader(encoder, **options)
    made = PartnerWorld(teacher, agent) if world == "one" else BatchWorld(teacher, agent, Fixed(3))
    made.start_epoch(0, 5)
    while not made.epoch_done():
        made.parley()
    return agent.inputs


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("include_labels", [False, True])
@given(
    data=episodes,
    size=st.sampled_from([-1, 1, 2, 3, 4]),
    encoding=st.fixed_dictionaries(
        {
            "delimiter": st.booleans(),
            "speaker_tokens": st.booleans(),
            "max_context": st.sampled_from([0, 3, 100]),
            "segments": st.sampled_from(["turn", "line"]),
        }
    ),
)
def test_history_live_and_flattened_give_the_same_ids(
    data, size, encoding, include_labels, training
):
    options = {"history_size": size, "use_reply": "label" if include_labels else "none"}
    live = read(data, "one", training, encoding, **options)
    assert len(live) == sum(map(len, data))
    flat = [Flatten(include_labels=include_labels)]
    for other in (
        read(data, "many", training, encoding, **options),
        read(data, "one", training, encoding, flat, **options),
        read(data, "many", training, encoding, flat, **options),
    ):
        assert live.keys() == other.keys()
        for name, ids in live.items():
            assert ids.tolist() == other[name].tolist()


@given(data=episodes)
def test_history_examples_of_a_teacher_carry_the_context_that_flattening_gives(data):
    given = [[{"text": text, "labels": labels} for text, labels in each] for each in data]
    plain = IterableTeacher({"test": given}).for_split("test").examples()
    flat = IterableTeacher({"test": given}, mutators=[Flatten()]).for_split("test").examples()
    for one, other in zip(plain, flat, strict=True):
        assert list(one.get("context", ())) == list(other["context"])
        assert (one["id"], one["text"]) == (other["id"], other["text"])


class Changing(ConversationAgent):
    """Adds a word in front of the text that it observes, another one in each epoch. Keeps its
    input."""

    takes_batches = False

    def __init__(self, in_place):
        super().__init__(history_size=2)
        self.encoder = TextEncoder(TOKENIZER, history_size=2)
        self.epoch = {"word": ""}
        self.read = []
        self.in_place = in_place

    def observe(self, message):
        word, observation = self.epoch["word"], super().observe(message)
        turns = observation["turns"]
        changed = [*turns[:-1], (turns[-1][0], f"{word}{turns[-1][1]}")]
        if self.in_place:
            turns[:] = changed
        else:
            observation["turns"] = changed
        return observation

    def batch_act(self, observations):
        rows, _ = self.encoder.contexts(Batch.of(observations))
        self.read.append(TOKENIZER.decode(rows[:, 0].tolist()))
        return MessageBatch({}, len(observations))


@pytest.mark.parametrize("in_place", [False, True])
def test_agent_that_changes_what_it_observes_reads_the_change(in_place):
    """Token ids are remembered by an example's position in the data, but only if its text is
    unchanged."""
    teacher = IterableTeacher({"train": [[{"text": "a", "labels": ["x"]}]]})
    agent = Changing(in_place)
    with BatchWorld(teacher.for_split("train", training=True), agent, Fixed(4)) as world:
        for epoch, agent.epoch["word"] in enumerate(["", "d", "", "e", "d"]):
            world.start_epoch(epoch, 0)
            world.parley()
    assert agent.read == ["a", "da", "a", "ea", "da"]
