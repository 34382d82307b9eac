"""A saved model to talk to."""

from pathlib import Path
from threading import Lock
from typing import Any, Dict, List, Optional

from ..messages import Message
from ..protocol import Agent
from ..training.experiment import CodeLike, Experiment, Overrides, PathLike


class Chatbot:
    """A saved model to talk to; keeps the conversation. Threads that share one speak in one
    conversation, in turn; for one of its own, each takes a ``copy.deepcopy`` of it.

    path (Path): Folder of the saved model.
    overrides (Optional[Mapping[str, Any]]): Changes to its config: {"system.gpu_id": 0}.
    code (Union[str, Path, None]): Python file that registers what the config names.
    RAISES (DialogError): If the folder is not a whole saved model.
    """

    def __init__(self, path: PathLike, *, overrides: Overrides = None, code: CodeLike = None):
        self.path = Path(path)
        self.experiment = Experiment.from_model(path, overrides, code)
        self._begin()

    def __getstate__(self) -> Dict[str, Any]:
        # For pickle and copy.deepcopy: the talker is a copy of the agent.
        talk = self._talker.conversation_state()
        return {"path": self.path, "experiment": self.experiment, "talk": talk}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        self.path, self.experiment = state["path"], state["experiment"]
        self._begin()
        self._talker.set_conversation_state(state["talk"])

    def _begin(self) -> None:
        self.meta = self.experiment.meta
        self.agent: Agent = self.experiment.agent
        self._talker = self.agent.clone()
        self._lock = Lock()

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
        with self._lock:
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
