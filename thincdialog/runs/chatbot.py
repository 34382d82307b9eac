"""A saved model to talk to."""

from pathlib import Path
from typing import List, Optional

from ..messages import Message
from ..protocol import Agent
from ..training.experiment import CodeLike, Experiment, Overrides, PathLike


class Chatbot:
    """A saved model to talk to; keeps the conversation.

    path (Path): Folder of the saved model.
    overrides (Optional[Mapping[str, Any]]): Changes to its config: {"system.gpu_id": 0}.
    code (CodeLike): Python file, or several, registering what the config names.
    RAISES (DialogError): If the folder is not a whole saved model.
    """

    def __init__(self, path: PathLike, *, overrides: Overrides = None, code: CodeLike = None):
        self.path = Path(path)
        self.experiment = Experiment.from_model(path, overrides, code)
        self.meta = self.experiment.meta
        self.agent: Agent = self.experiment.agent
        self._talker = self.agent.clone()

    def respond(self, text: str, candidates: Optional[List[str]] = None) -> str:
        """The model's reply to what a user says next; an error starts a new conversation.

        candidates (Optional[List[str]]): Replies to choose from; those of training if None.
        RAISES (TypeError): If either is something else; the conversation stays.
        """
        if not isinstance(text, str):
            raise TypeError(f"text should be a string, got {text!r}")
        if isinstance(candidates, str) or not all(isinstance(c, str) for c in candidates or ()):
            raise TypeError(f"candidates should be a list of strings, got {candidates!r}")
        message = Message(text=text, episode_done=False, agent="user")
        if candidates is not None:
            message["label_candidates"] = list(candidates)
        self._talker.observe(message)
        try:
            reply = self._talker.act()
        except BaseException:  # A message must not stay without a reply.
            self._talker.reset()
            raise
        self._talker.self_observe(reply)
        return reply.get("text") or ""

    def reset(self) -> None:
        """Start a new conversation."""
        self._talker.reset()
