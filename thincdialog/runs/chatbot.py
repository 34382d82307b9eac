"""A saved model to chat with."""

from threading import Lock
from typing import Any, Dict, List, Optional, Sequence, Union, overload

from ..errors import DialogError
from ..formats.wording import short
from ..messages import PARTNER, SELF, Message
from ..protocol import Agent
from ..training.experiment import CodeLike, Overrides, PathLike
from ..training.trained_model import Answer, Reply, TrainedModel, check_wanted


class Chatbot:
    """Chat with a saved model and remember the conversation. Threads that share a chatbot take
    turns in the same conversation; give each thread its own ``clone`` for a separate conversation.

    path (Path): Folder of the saved model.
    overrides (Optional[Mapping[str, Any]]): Config settings to change: {"system.gpu_id": 0}.
    code (CodeLike): Python file or files that register functions that the agent needs.
    RAISES (DialogError): If the folder is not a complete saved model.
    """

    def __init__(self, path: PathLike, *, overrides: Overrides = None, code: CodeLike = None):
        self.model = TrainedModel(path, overrides, code)
        self._begin()

    def __getstate__(self) -> Dict[str, Any]:
        # For pickle and copy.deepcopy. The agent of the conversation is restored as a clone.
        return {"model": self.model, "talk": self._talker.conversation_state()}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.model = state["model"]
        self._begin()
        self._talker.set_conversation_state(state["talk"])

    def _begin(self) -> None:
        self.path, self.meta = self.model.path, self.model.meta
        self.agent: Agent = self.model.agent
        self._talker = self.agent.clone()
        self._lock = Lock()

    def clone(self) -> "Chatbot":
        """Return a chatbot for another conversation, which begins empty.

        The clone shares the model, the weights and the candidates with this chatbot, so it costs
        microseconds and no memory for weights. Threads may answer with clones at the same time.
        """
        clone = object.__new__(type(self))
        clone.__dict__.update(self.__dict__, _talker=self.agent.clone(), _lock=Lock())
        return clone

    @overload
    def respond(
        self,
        text: str,
        candidates: Optional[Sequence[str]] = None,
        *,
        threshold: Optional[float] = None,
    ) -> str: ...

    @overload
    def respond(
        self,
        text: str,
        candidates: Optional[Sequence[str]] = None,
        *,
        top: int,
        threshold: Optional[float] = None,
    ) -> List[Answer]: ...

    def respond(
        self,
        text: str,
        candidates: Optional[Sequence[str]] = None,
        *,
        top: Optional[int] = None,
        threshold: Optional[float] = None,
    ) -> Union[str, List[Answer]]:
        """Return the model's reply to the user's next message; an error starts a new conversation.

        text (str): The message.
        candidates (Optional[Sequence[str]]): Replies to choose from (default: the candidates of
            training). For a classifier, classes; the model must know at least one of them.
        top (Optional[int]): Number of answers to return, with their probabilities. The first one is
            the reply. None returns only the reply, as a string.
        threshold (Optional[float]): Probability, 0.0 to 1.0. If the best answer is less probable,
            the reply is the agent's ``reject_class`` instead (default: the model's threshold).
        RETURNS (Union[str, List[Answer]]): The reply, or with ``top`` the answers. If the reply is
            not one of the answers, it precedes them without a probability.
        RAISES (TypeError, ValueError): If an argument is invalid; the conversation does not
            change.
        RAISES (DialogError): If a threshold is given, and the model has no probabilities; or if no
            candidate is a class of a classifier.
        """
        message = Message(_message(text, candidates), episode_done=False)
        check_wanted(top, threshold)
        _check_classes(self.agent, candidates)
        with self._lock:
            observation = self._talker.observe(message)
            try:
                (said,) = self.model.act([self._talker], [observation], top or 1)
                reply = self.model.read(message, said, top or 1, threshold)
            except BaseException:  # A message must not remain without a reply.
                self._talker.reset()
                raise
            self._talker.self_observe(Message(said, text=reply.text))
        return _answered(reply, top)

    def respond_to_all(
        self,
        conversations: Sequence[Union[str, Sequence[str]]],
        candidates: Optional[Sequence[str]] = None,
        *,
        top: Optional[int] = None,
        threshold: Optional[float] = None,
    ) -> List[Union[str, List[Answer]]]:
        """Reply to many conversations, in batches. The chatbot's own conversation does not change.

        conversations (Sequence): Messages, or lists of turns. The model replies to the last turn of
            each. Speakers alternate, so the turn before it is the model's own.
        candidates, top, threshold: As for ``respond``.
        RETURNS (List[Union[str, List[Answer]]]): The return value of ``respond`` for each.
        """
        check_wanted(top, threshold)
        if isinstance(conversations, str):
            raise TypeError(f"conversations should be a list, got {conversations!r}")
        messages = [_conversation(each, candidates) for each in conversations]
        _check_classes(self.agent, candidates)
        replies = self.model.answer(messages, top or 1, threshold)
        return [_answered(reply, top) for reply in replies]

    def reset(self) -> None:
        """Start a new conversation."""
        self._talker.reset()


def _answered(reply: Reply, top: Optional[int]) -> Union[str, List[Answer]]:
    return reply.text or "" if top is None else reply.best


def _check_classes(agent: Agent, candidates: Optional[Sequence[str]]) -> None:
    classes = agent.classes
    if candidates and classes and set(candidates).isdisjoint(classes):
        given, found = (
            ", ".join(map(short, texts[:3])) + (", ..." if len(texts) > 3 else "")
            for texts in (candidates, classes)
        )
        raise DialogError(f"None of the candidates ({given}) is a class of the model ({found}).")


def _message(text: str, candidates: Optional[Sequence[str]]) -> Message:
    if not isinstance(text, str):
        raise TypeError(f"text should be a string, got {text!r}")
    message = Message(text=text, agent="user")
    if candidates is not None:
        if isinstance(candidates, str) or not all(isinstance(c, str) for c in candidates):
            raise TypeError(f"candidates should be a list of strings, got {candidates!r}")
        # Equal scores keep the order of the candidates; duplicates have no effect.
        message["label_candidates"] = list(dict.fromkeys(candidates))
        if not message["label_candidates"]:
            raise ValueError("candidates is empty: give one or more, or None for the model's own")
    return message


def _conversation(turns: Union[str, Sequence[str]], candidates: Optional[Sequence[str]]) -> Message:
    said: List[Any] = list(turns) if isinstance(turns, (list, tuple)) else [turns]
    if not said or not all(isinstance(turn, str) for turn in said):
        raise TypeError(f"a conversation should be a string or a list of strings, got {turns!r}")
    message = Message(_message(said[-1], candidates), episode_done=True)
    roles = [SELF if place % 2 else PARTNER for place in range(len(said) - 1, 0, -1)]
    message["context"] = list(zip(roles, said))
    return message
