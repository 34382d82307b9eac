"""Agents: baselines without weights, and agents that answer from a Thinc model."""

from . import (  # noqa: F401
    classifier,
    fast_text,
    fixed_response,
    most_frequent,
    multi_label,
    random_candidate,
    ranker,
    repeat_label,
    retrieval,
    star_space,
)
from .conversation import Conversation, ConversationAgent
from .judged import Inputs, Judged
from .model_agent import ModelAgent

__all__ = ["Conversation", "ConversationAgent", "Inputs", "Judged", "ModelAgent"]
