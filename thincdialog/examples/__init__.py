"""Examples on their way to an agent: stores, the order of an epoch, and batches."""

from .batch import Batch
from .memory_store import MemoryStore
from .store import Store
