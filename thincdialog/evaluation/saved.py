"""Saved models at work: load, evaluate, talk."""

from pathlib import Path
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from ..config import CheckedConfig, load_code, load_config, resolve_config
from ..errors import ModelError
from ..files.saved_model import check_files, read_meta
from ..messages import Message
from ..ops.choice import ops_to_answer, using_ops
from ..protocol import Agent
from .evaluate_agent import evaluate_agent, evaluation_teacher, sample_exchanges
from .results import Exchange


class Chatbot:
    """A saved model to talk to; keeps the conversation.

    path (Path): Folder of the saved model.
    overrides (Optional[Mapping[str, Any]]): Changes to its config, such as
        {"system.gpu_id": 0}.
    code (Union[str, Path, None]): Python file that registers what the config names.
    RAISES (DialogError): If the folder is not a whole saved model.
    """

    def __init__(
        self,
        path: Union[str, Path],
        *,
        overrides: Optional[Mapping[str, Any]] = None,
        code: Union[str, Path, None] = None,
    ):
        self.path = Path(path)
        self.meta = read_meta(self.path)
        check_files(self.path, self.meta)
        load_code(code)
        self.checked = read_config(self.path, overrides or {})
        self.ops = ops_to_answer(self.checked.interpolated["system"])
        with using_ops(self.ops):
            self.parts = resolve_config(self.checked)
            self.agent: Agent = self.parts["agent"]
            self.agent.from_disk(self.path, tokenizer=self.parts["tokenizer"])
        self._talker = self.agent.clone()

    def respond(self, text: str, candidates: Optional[List[str]] = None) -> str:
        """The model's reply to what a user says next. If none can be given, the error
        starts a new conversation.

        candidates (Optional[List[str]]): Replies to choose from, for a ranker; what
            it was trained with if None.
        RAISES (TypeError): If text or candidates are something else; the conversation
            stays.
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


def read_config(folder: Path, overrides: Mapping[str, Any]) -> CheckedConfig:
    """The config of a saved model.

    RAISES (ModelError): If it is missing. (ConfigError): If it, or an override, is bad.
    """
    path = folder / "config.cfg"
    if not path.is_file():
        raise ModelError(f"{path}  is missing: the saved model is incomplete.")
    return load_config(path, overrides)


def evaluate(
    path: Union[str, Path],
    *,
    split: str = "test",
    overrides: Optional[Mapping[str, Any]] = None,
    code: Union[str, Path, None] = None,
) -> Dict[str, float]:
    """Evaluate a saved model on one split of its task, or of each of its tasks.

    split (str): "train", "dev" or "test".
    overrides (Optional[Mapping[str, Any]]): Such as {"paths.test": "my_test.jsonl"}.
    RETURNS (Dict[str, float]): Metric name to value. Of several tasks, a metric has the
        value over all examples; ``<task>/<metric>`` has that of one task, and
        ``macro/<metric>`` the mean over tasks.
    RAISES (DialogError): If the model or the data cannot be used.
    """
    report, _ = evaluate_with_samples(path, 0, split=split, overrides=overrides, code=code)
    return report


def evaluate_with_samples(
    path: Union[str, Path],
    n_samples: int,
    *,
    split: str = "test",
    overrides: Optional[Mapping[str, Any]] = None,
    code: Union[str, Path, None] = None,
) -> Tuple[Dict[str, float], List[List[Exchange]]]:
    """Like ``evaluate``, and the first conversations with the model's replies too."""
    chatbot = Chatbot(path, overrides=overrides, code=code)
    with using_ops(chatbot.ops):
        parts = chatbot.parts
        teacher = evaluation_teacher(chatbot.checked, parts, split)
        report = evaluate_agent(chatbot.agent, teacher, parts["evaluation"]["world"])
        samples = sample_exchanges(chatbot.agent, teacher, n_samples) if n_samples else []
    return report, samples
