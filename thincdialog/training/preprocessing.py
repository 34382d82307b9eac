"""Preprocessing of stored examples with the agent's own ``observe``, once when the store is
built."""

from typing import Any, Dict, Optional

from ..config import CheckedConfig
from ..contract import is_ours, is_users
from ..errors import ConfigError, Problem
from ..examples.memory_store import MemoryStore
from ..examples.order import as_shown
from ..protocol import Agent

_SETTING = "[loader] preprocess is true"
# Fields that ``observe`` and the teacher add again whenever an example is used.
_ADDED_AGAIN = ("turns", "episode_done")


class Preprocessing:
    """Let the agent observe every example before it is stored, like ParlAI's ``--preprocess``. In
    training, stored examples go to ``batch_act`` without another ``observe``.

    agent (Agent): An agent with its own ``observe``.
    settings (Dict[str, Any]): Settings of ``[agent]``. Agents with other settings have their own
        stores in the same folder.
    """

    def __init__(self, agent: Agent, settings: Dict[str, Any]):
        self.agent, self.settings = agent, settings

    def observed(self, shard: MemoryStore, name: str, training: bool) -> MemoryStore:
        """Return the examples with the fields that the agent added or changed.

        shard (MemoryStore): The examples.
        name (str): Name of the task.
        training (bool): Whether the agent sees `labels`; otherwise it sees `eval_labels`.
        RAISES (ConfigError): If a conversation has several turns, or if the agent changed `turns`.
        """
        if not shard.is_single_turn:
            text = f"{_SETTING}, but [tasks.{name}] has conversations of several turns"
            hint = 'add the mutator "thincdialog.Flatten.v1" to the task'
            raise ConfigError([Problem("", text, hint)])
        made, copy = MemoryStore(is_held=False), self.agent.clone()
        built_in: Any = next(cls for cls in type(copy).__mro__ if is_ours(cls))
        for row in range(shard.n_examples):
            message = copy.observe(as_shown(shard.message(row), training, True))
            turns = message.get("turns")
            for field in _ADDED_AGAIN:
                message.pop(field, None)
            copy.reset()
            if built_in.observe(copy, type(message)(message)).get("turns") != turns:
                text = f"{_SETTING}, but observe() of {type(copy).__name__} changes 'turns'"
                hint = "change 'text' before it calls super().observe(), or set preprocess = false"
                raise ConfigError([Problem("", text, hint)])
            copy.reset()
            if "eval_labels" in message:
                message["labels"] = message.pop("eval_labels")
            made.append([message])
        return made


def preprocessing_of(checked: CheckedConfig, agent: Agent) -> Optional[Preprocessing]:
    """Return the preprocessing for ``[loader] preprocess``; None if it is false.

    RAISES (ConfigError): If there is no store, or no ``observe`` to run.
    """
    loader = checked.interpolated["loader"]
    if not loader["preprocess"]:
        return None
    if loader["store"] is None:
        text = f"{_SETTING}, but there is no store to keep the result"
        raise checked.error(text, "give a folder: --loader.store FOLDER", "loader", "preprocess")
    if not is_users(type(agent).observe) or not agent.can_batch:
        name = type(agent).__name__
        text = f"{_SETTING}, but {name} does not define both observe() and batch_act()"
        raise checked.error(text, "set it to false", "loader", "preprocess")
    return Preprocessing(agent, checked.interpolated["agent"])
