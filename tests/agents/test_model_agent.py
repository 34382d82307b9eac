"""What rankers and classifiers have in common."""

import sys
import time

import pytest
from thinc.api import chain, noop, with_padded

from thincdialog.api import IterableTeacher, Message, ProtocolError, registry
from thincdialog.layers.pool import pool
from thincdialog.layers.token_embed import TokenEmbed
from thincdialog.ops.choice import get_dialog_ops, using_ops

ROWS = [("red red", "stop"), ("green green green green", "go")]


def bag():
    return registry.models.get("thincdialog.BagEncoder.v1")(width=8)


def padding():
    return chain(TokenEmbed(8), with_padded(noop()), pool("max"))


def build(make_encoder=bag, **options):
    with using_ops(get_dialog_ops(-1)):
        model = registry.models.get("thincdialog.Classifier.v1")(make_encoder())
        agent = registry.agents.get("thincdialog.Classifier.v1")(model, **options)
        tokenizer = registry.tokenizers.get("thincdialog.Words.v1")()
        train = IterableTeacher({"train": ROWS}).for_split("train", training=True)
        agent.initialize(train, tokenizer=tokenizer, seed=0)
    agent.reset_metrics()
    return agent


def observed(agent, **fields):
    rows = [Message(text=text, labels=[label], id=label, **fields) for text, label in ROWS]
    return agent.batch_observe(rows)


def test_model_agent_copy_is_cheap_and_has_no_weights_of_its_own():
    agent = build()
    copy = agent.clone()
    for name in ("parameters", "model", "tokenizer", "text", "counters"):
        assert getattr(copy, name) is getattr(agent, name)
    assert copy.conversation is not agent.conversation
    assert sys.getsizeof(copy.__dict__) + sys.getsizeof(copy.conversation) < 1000  # bytes
    seconds = []
    for _ in range(5):
        started = time.perf_counter()
        for _ in range(1000):
            agent.clone()
        seconds.append((time.perf_counter() - started) / 1000)
    assert min(seconds) < 50e-6, "a copy takes 1 to 2 microseconds on an idle machine"


def test_model_agent_counts_the_padding_of_layers_that_pad():
    agent = build()
    agent.batch_act(observed(agent))
    report = agent.report()
    assert report["tokens"].value() == 6
    assert report["padding_fraction"].value() == 0
    agent = build(padding)
    agent.batch_act(observed(agent))
    # A rectangle of 2 rows of 4 cells holds 2 + 4 tokens.
    assert agent.report()["padding_fraction"].value() == 1 - 6 / 8


def test_model_agent_counts_truncated_contexts_of_every_use():
    agent = build(max_context=3)
    for _ in range(2):
        agent.batch_act(observed(agent))
    report = agent.report()
    assert report["truncated_contexts"].value() == 2 / 4
    assert report["truncated_context_tokens"].value() == 1
    agent.reset_metrics()
    assert "truncated_contexts" not in agent.report()


def test_model_agent_learns_only_from_rows_with_labels():
    agent, alone = build(), build()
    rows = [Message(text="red", id="a"), Message(text="red red", labels=["stop"], id="b")]
    replies = agent.batch_act(agent.batch_observe(rows))
    assert len(replies) == 2 and agent.counters.examples == 1
    alone.batch_act(alone.batch_observe(rows[1:]))
    assert agent.parameters.gradients.tobytes() == alone.parameters.gradients.tobytes()


def test_model_agent_update_is_the_mean_over_examples_and_clears_the_gradient():
    once, twice = build(), build()
    for agent, n_times in ((once, 1), (twice, 2)):
        for _ in range(n_times):
            agent.batch_act(observed(agent))
        norm = agent.update(registry.optimizers.get("SGD.v1")(0.1, grad_clip=0.0, L2=0.0))
        assert norm > 0 and agent.counters.examples == 0 and agent.counters.ids == []
        assert not agent.parameters.gradients.any()
    difference = once.parameters.values - twice.parameters.values
    assert abs(difference).max() < 1e-7


def test_model_agent_misuse_names_the_call():
    agent = build()
    copy = agent.clone()
    with pytest.raises(ProtocolError, match=r"classifier\.act\(\) was called before observe\(\)"):
        copy.act()
    copy.observe(Message(text="red", agent="user"))
    with pytest.raises(ProtocolError, match=r"observe\(\) was called twice without act\(\)"):
        copy.observe(Message(text="red", agent="user"))
