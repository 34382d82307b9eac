"""Teachers: agents whose acts come from data, one source of data per file."""

from . import conversations, labelled_text, parlai_text  # noqa: F401
from .teacher import Teacher

__all__ = ["Teacher"]
