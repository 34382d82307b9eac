"""A saved model to talk to, and what it does with what it cannot answer."""

import pytest

from tests.training.examples import quietly_train
from thincdialog.api import load


@pytest.fixture(scope="module")
def chatbot(tmp_path_factory):
    result, _ = quietly_train(output=tmp_path_factory.mktemp("model"), training__max_steps=1)
    return load(result.output / "model-best")


@pytest.mark.parametrize("text", [None, 5, b"hi", ["hi"]])
def test_respond_takes_strings_only_and_goes_on(chatbot, text):
    with pytest.raises(TypeError, match="text should be a string, got"):
        chatbot.respond(text)
    assert chatbot.respond("hi")


@pytest.mark.parametrize("candidates", ["ab", [None], ["a", 5]])
def test_respond_takes_lists_of_candidates_only(chatbot, candidates):
    with pytest.raises(TypeError, match="candidates should be a list of strings"):
        chatbot.respond("hi", candidates)
    assert chatbot.respond("hi", ["a", "b"]) in ("a", "b")


@pytest.mark.parametrize("text", ["", "\ud800", "\0", "x" * 100_000, "\n"])
def test_respond_answers_odd_texts(chatbot, text):
    assert chatbot.respond(text, ["a", "b"]) in ("a", "b")


def test_respond_answers_again_after_an_interrupt(chatbot, monkeypatch):
    def interrupted(observations):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(chatbot.agent, "answer", interrupted)
        patch.setattr(chatbot._talker, "answer", interrupted)
        chatbot.respond("hi")
    assert chatbot.respond("hi", ["a", "b"]) in ("a", "b")
