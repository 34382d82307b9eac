"""Agents: baselines without weights, and agents that answer from a Thinc model."""

from ..registry import import_files
from .conversation import ConversationAgent
from .judged import Inputs, Judged
from .model_agent import ModelAgent

import_files(__name__, __path__)
