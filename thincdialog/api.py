"""Everything public, in one place.

    from thincdialog.api import train, evaluate, load, registry
"""

from .agents import Conversation, ConversationAgent, ModelAgent
from .errors import ConfigError, DataError, DialogError, ModelError, OutputError, TrainingError
from .messages import PARTNER, SELF, Message, MessageBatch
from .metrics import AverageMetric, ExampleMetric, Metric, SumMetric
from .protocol import Agent
from .registry import registry
from .teachers import Teacher
from .training.results import Result
from .training.saved import Chatbot, evaluate, evaluate_with_samples
from .training.train import train
from .worlds import BatchWorld, MultiAgentWorld, PartnerWorld, World


def load(path, *, overrides=None, code=None) -> Chatbot:
    """Load a saved model; see ``Chatbot``."""
    return Chatbot(path, overrides=overrides, code=code)
