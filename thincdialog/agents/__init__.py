"""Agents: baselines without weights, and agents that answer from a Thinc model."""

from . import classifier, ranker  # noqa: F401
from .conversation import Conversation, ConversationAgent
from .model_agent import ModelAgent

__all__ = ["Conversation", "ConversationAgent", "ModelAgent"]
