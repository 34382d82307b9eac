"""Examples on their way to an agent: stores, the order of an epoch, batches."""

from .batch import Batch
from .store import MemoryStore, Store

__all__ = ["Batch", "MemoryStore", "Store"]
