"""Teachers: agents whose acts come from data, one source of data per file."""

from . import conversations, labelled_text, numbered_text, parlai_text  # noqa: F401
from .iterable import IterableTeacher
from .teacher import Teacher

__all__ = ["IterableTeacher", "Teacher"]
