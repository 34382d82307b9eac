"""Teachers: agents whose acts come from data. Each file has the teacher of one kind of data."""

from ..registry import import_files
from .iterable import IterableTeacher
from .multi_task import MultiTask, mix_tasks
from .teacher import Teacher

import_files(__name__, __path__)
