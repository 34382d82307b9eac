"""Workers side by side, as threads or as processes, and what they share."""

from .cores import n_cores
from .process_workers import ProcessWorkers, Recipe
from .shared_arrays import SharedArrays
from .thread_workers import ThreadWorkers

__all__ = ["ProcessWorkers", "Recipe", "SharedArrays", "ThreadWorkers", "n_cores"]
