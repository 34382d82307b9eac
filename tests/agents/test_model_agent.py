"""Behaviour that rankers and classifiers share."""

import tracemalloc

import numpy as np
import pytest
from thinc.api import Ragged

from tests.training.examples import RANKER, quietly_train
from thincdialog.api import (
    Batch,
    ConfigError,
    Inputs,
    Judged,
    Message,
    ModelAgent,
    ProtocolError,
    TrainingError,
)
from thincdialog.contract import CodeError
from thincdialog.layers.token_embed import TokenEmbed
from thincdialog.metrics.exact import ExactSum
from thincdialog.ops.choice import get_dialog_ops, using_ops

from . import colours
from .colours import bag, make, rectangles

ROWS = [("red red", "stop"), ("green green green green", "go")]
EXAMPLES = [Message(text=text, labels=[label], id=label) for text, label in ROWS]


def build(make_encoder=bag, **options):
    make_model = lambda: make("models", "Classifier", make_encoder())  # noqa: E731
    agent, _ = colours.build("Classifier", make_model, ROWS, **options)
    return agent


def test_model_agent_copy_is_cheap_and_has_no_weights_of_its_own():
    agent = build()
    copy = agent.clone()
    for name in ("parameters", "model", "tokenizer", "text", "tally"):
        assert getattr(copy, name) is getattr(agent, name)
    assert copy.conversation is not agent.conversation
    tracemalloc.start()
    copies = [agent.clone() for _ in range(100)]
    n_bytes = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert n_bytes / len(copies) < 2500  # Python 3.13 takes twice as much as 3.11.


def test_model_agent_needs_no_answer_without_conversations():
    agent = build()
    agent.answer = lambda batch: pytest.fail("there is nothing to answer")
    assert list(agent.batch_act([])) == []


def test_model_agent_counts_the_padding_of_layers_that_pad():
    # A rectangle of 2 rows of 4 cells holds 2 + 4 tokens.
    for make_encoder, share in ((bag, 0.0), (rectangles, 1 - 6 / 8)):
        agent = build(make_encoder)
        agent.batch_act(EXAMPLES)
        report = agent.report()
        assert report["tokens"].value() == 6 and report["padding_fraction"].value() == share


def test_model_agent_counts_truncated_contexts_of_every_use():
    agent = build(max_context=3)
    for _ in range(2):
        agent.batch_act(EXAMPLES)
    report = agent.report()
    assert report["truncated_contexts"].value() == 2 / 4
    assert report["truncated_context_tokens"].value() == 1
    counts = agent.update(make("optimizers", "SGD.v1", 0.1)).counts
    wanted = ("contexts", "truncated_contexts", "truncated_context_tokens", "tokens")
    assert [counts[name] for name in wanted] == [4, 2, 2, 10]
    agent.reset_metrics()
    assert "truncated_contexts" not in agent.report()


def test_model_agent_learns_only_from_rows_with_labels():
    agent, alone = build(), build()
    rows = [Message(text="red", id="a"), Message(text="red red", labels=["stop"], id="b")]
    replies = [reply.get("text") for reply in agent.batch_act(rows)]
    assert replies == [None, "go"] and agent.n_gathered == 1
    alone.batch_act(rows[1:])
    assert agent.parameters.gradients.tobytes() == alone.parameters.gradients.tobytes()
    report = agent.update(make("optimizers", "SGD.v1", 0.1))
    assert report.examples == 1 and report.unit == "examples"


def test_model_agent_update_is_the_mean_over_examples_and_clears_the_gradient():
    once, twice, parts = build(), build(), build()
    for agent, n_times in ((once, 1), (twice, 2), (parts, 2)):
        for number in range(n_times):
            if agent is parts:
                agent.begin_microbatch(0, 1, number)
            agent.batch_act(EXAMPLES)
        report = agent.update(make("optimizers", "SGD.v1", 0.1, grad_clip=0.0, L2=0.0))
        assert report.gradient_norm > 0 and report.examples == 2 * n_times
        assert agent.n_gathered == 0 and not agent.parameters.gradients.any()
    for other in (twice, parts):
        assert abs(once.weights - other.weights).max() < 1e-7


def test_model_agent_microbatches_of_a_step_that_was_given_up_are_dropped():
    agent, alone = build(), build()
    for number in range(3):
        agent.begin_microbatch(0, 1, number)
        agent.batch_act(EXAMPLES)
    agent.give_up()
    for each in (agent, alone):
        each.begin_microbatch(0, 1, 0)
        each.batch_act(EXAMPLES)
        each.update(make("optimizers", "SGD.v1", 0.1))
    assert agent.weights.tobytes() == alone.weights.tobytes()


def test_model_agent_replica_shares_weights_and_counts_for_itself():
    agent = build()
    replica, before = agent.replica(), agent.weights.copy()
    agent.batch_act(EXAMPLES)
    replica.batch_act(EXAMPLES[:1])
    assert (agent.n_gathered, replica.n_gathered) == (2, 1)
    assert replica.update(make("optimizers", "SGD.v1", 0.1)).examples == 1
    assert np.shares_memory(agent.weights, replica.weights) and (agent.weights != before).any()
    assert agent.n_gathered == 2 and agent.parameters.gradients.any()
    assert agent.report()["tokens"].value() == 6


def test_model_agent_misuse_names_the_call():
    copy = build().clone()
    with pytest.raises(ProtocolError, match=r"classifier\.act\(\) was called before observe\(\)"):
        copy.act()
    copy.observe(Message(text="red", agent="user"))
    with pytest.raises(ProtocolError, match=r"observe\(\) was called twice without act\(\)"):
        copy.observe(Message(text="red", agent="user"))


def test_model_agent_reports_loss_and_accuracy_since_the_reset():
    agent = build()
    optimizer = make("optimizers", "SGD.v1", 0.0)  # Keeps the weights as they are.
    losses, n_right = [], 0
    for rows in (EXAMPLES, EXAMPLES[:1], EXAMPLES):
        replies = agent.batch_act(rows)
        n_right += sum(reply["text"] in row["labels"] for reply, row in zip(replies, rows))
        report = agent.update(optimizer)
        losses += [report.loss]
    told = agent.report()
    assert told["loss"].value() == pytest.approx(sum(losses) / 5)
    assert told["accuracy"].value() == n_right / 5 and told["accuracy"].denominator == ExactSum(5)
    agent.reset_metrics()
    assert "loss" not in agent.report() and "accuracy" not in agent.report()


def test_model_agent_keeps_gathered_examples_when_metrics_are_reset():
    agent, alone = build(), build()
    for each in (agent, alone):
        each.batch_act(EXAMPLES)
        if each is agent:
            each.reset_metrics()
        assert each.update(make("optimizers", "SGD.v1", 0.1)).examples == 2
    assert agent.weights.tobytes() == alone.weights.tobytes()


def test_model_agent_replies_in_training_are_not_in_its_history():
    agent = build(history_size=-1, use_reply="model")
    copy = agent.clone()
    copy.observe(Message(text="red red", labels=["stop"], episode_done=False))
    reply = copy.act()
    copy.self_observe(reply)
    assert reply["text"] in ("stop", "go")
    assert [text for _, text in copy.conversation] == ["red red"]


@pytest.mark.parametrize("candidates", ["batch", "fixed", "inline"])
def test_ranker_reports_the_best_candidate_in_training(candidates):
    answers = {"red": "stop", "green": "go", "amber": "wait"}
    rows = colours.examples(answers)
    make_model = lambda: make("models", "BiEncoder", bag())  # noqa: E731
    agent, teacher = colours.build("Ranker", make_model, rows, candidates=candidates)
    lists = [["stop", "go"], ["go", "wait"], ["wait", "stop"]]
    batch = [
        Message(text=row["text"], labels=row["labels"], id=str(n), label_candidates=lists[n % 3])
        for n, row in enumerate(rows)
    ]
    scores = {}
    agent.loss = lambda Z, targets, mask: scores.update(Z=Z, mask=mask) or (Z, Z.sum(axis=1))
    replies = agent.learn(Batch.of(batch))
    texts = agent.fixed if candidates == "fixed" else list(answers.values())
    for number, reply in enumerate(replies):
        allowed = lists[number % 3] if candidates == "inline" else texts
        best = max(allowed, key=lambda text: scores["Z"][number, texts.index(text)])
        assert reply["text"] == best
    assert len(replies) == len(batch)


def test_ranker_replies_in_training_match_their_examples_if_some_are_ignored():
    rows = colours.examples({"red": "stop", "green": "go"})
    make_model = lambda: make("models", "BiEncoder", bag())  # noqa: E731
    options = {"candidates": "inline", "ignore_bad_candidates": True}
    agent, _ = colours.build("Ranker", make_model, rows, **options)
    lists = [["go"], ["stop"], ["stop"], ["stop", "go"]]
    batch = [
        Message(text="red", labels=["stop"], id=str(n), label_candidates=texts)
        for n, texts in enumerate(lists)
    ]
    del batch[1]["labels"]  # An example with nothing to learn from.
    replies = agent.batch_act(batch)
    assert [reply.get("text") for reply in replies][:3] == [None, None, "stop"]
    assert replies[3]["text"] in lists[3] and agent.n_gathered == 2


BAG = '@models = "thincdialog.BagEncoder.v1"\nwidth = 16\ndropout = 0.2\n'
TWO = f"""@layers = "LAYER"

[agent.model.encoder.*.bag]
{BAG}
[agent.model.encoder.*.other]
{BAG}"""


def test_model_agent_error_of_a_layer_of_thinc_is_one_line():
    config = RANKER.replace(BAG, TWO.replace("LAYER", "add.v1"))
    said = r"\[agent.model\] Thinc's layer add cannot process .* - replace it by concatenate.v1"
    with pytest.raises(ConfigError, match=said):
        quietly_train(config, training__max_steps=1)
    quietly_train(config.replace("add.v1", "concatenate.v1"), training__max_steps=1)


class TokensToOne(ModelAgent):
    """A custom agent with a loss per token. It learns to output 1 for each token."""

    def sample(self):
        return [self.sample_inputs()]

    def read(self, batch):
        return Inputs(batch, self.inputs(batch))

    def judge(self, Y, inputs):
        errors = Y.dataXd - 1
        gradient = Ragged(2 * errors, Y.lengths)
        return Judged(gradient, (errors**2).sum(), weight=len(errors), unit="tokens")


def custom(kind=TokensToOne):
    with using_ops(get_dialog_ops(-1)):
        agent = kind(TokenEmbed(1))
        teacher = colours.teacher_of([{"text": text, "labels": [label]} for text, label in ROWS])
        agent.initialize(teacher, tokenizer=make("tokenizers", "Words"), seed=0)
    return agent


def test_model_agent_with_a_loss_per_token_learns_the_mean_over_tokens():
    agent = custom()
    E, S = (agent.model.get_param(name) for name in "ES")
    tokens = agent.inputs(Batch.of(EXAMPLES)).dataXd
    expected, start = E.copy(), E.copy()
    for id, segment in tokens:
        expected[id] -= 0.1 * 2 * (start[id] + S[segment] - 1) / len(tokens)
    loss = ((start[tokens[:, 0]] + S[tokens[:, 1]] - 1) ** 2).sum()
    # In two batches, with different numbers of tokens.
    for example in EXAMPLES:
        agent.batch_act([example])
    report = agent.update(make("optimizers", "SGD.v1", 0.1, grad_clip=0.0, L2=0.0))
    assert (report.weight, report.unit, report.examples) == (6, "tokens", 2)
    assert report.loss == pytest.approx(loss)
    assert E == pytest.approx(expected, abs=1e-7) and (E != start).any()
    assert agent.report()["loss"].value() == pytest.approx(loss / 6)


def test_model_agent_with_its_own_loss_that_is_not_finite_names_the_examples():
    class Broken(TokensToOne):
        def judge(self, Y, inputs):
            return super().judge(Y, inputs)._replace(loss=np.float32("inf"))

    agent = custom(Broken)
    before = agent.weights.copy()
    with pytest.raises(TrainingError, match=r"The loss is not finite.* batch: stop, go\."):
        agent.batch_act(EXAMPLES)
    assert (agent.weights == before).all() and not agent.parameters.gradients.any()


@pytest.mark.parametrize(
    "name, wrong, said",
    [
        ("read", lambda self, batch: batch, "Batch .* should return Inputs, or None"),
        ("judge", lambda self, Y, inputs: Y, "Ragged .* should return Judged"),
        ("judge", lambda self, Y, inputs: Judged(Y, 0.0, 0), "Judged.* weight an int above 0"),
        ("judge", lambda self, Y, inputs: Judged(Y, 0.0, "1"), "weight an int above 0"),
        ("judge", lambda self, Y, inputs: Judged(Y, 0.0, 1, "words"), 'unit "examples" or'),
        ("judge", lambda self, Y, inputs: Judged(Y.dataXd, 0.0, 1), "gradient shaped like Y"),
    ],
)
def test_model_agent_names_a_method_of_a_custom_agent_that_returns_something_else(
    name, wrong, said
):
    agent = custom(type("Wrong", (TokensToOne,), {name: wrong}))
    with pytest.raises(CodeError, match=rf"test_model_agent.py:\d+ .* returned .*{said}"):
        agent.batch_act(EXAMPLES)


def test_model_agent_that_learns_without_counting_is_refused():
    class Uncounted(TokensToOne):
        def learn(self, batch):
            Y, backprop = self.model.begin_update(self.inputs(batch))
            backprop(Ragged(Y.dataXd * 0 + 1, Y.lengths))

    agent = custom(Uncounted)
    agent.batch_act(EXAMPLES)
    with pytest.raises(CodeError, match=r"test_model_agent.py:\d+ .*learn\(\) left a gradient"):
        agent.update(make("optimizers", "SGD.v1", 0.1))
