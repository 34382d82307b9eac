"""Teachers: agents whose acts come from data, one source of data per file."""

from . import (  # noqa: F401
    coffee_order,
    conversations,
    dataset,
    json_layout,
    labelled_text,
    ml_datasets,
    numbered_text,
    parlai_text,
)
from .iterable import IterableTeacher
from .multi_task import MultiTask, mix_tasks
from .teacher import Teacher

__all__ = ["IterableTeacher", "MultiTask", "Teacher", "mix_tasks"]
