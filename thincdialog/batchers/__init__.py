"""Batchers, which choose the rows that an agent processes together. Each file has one policy."""

from .batcher import Batcher, missing_rows, plan_window
from .batchsort import Batchsort
from .fixed import Fixed
from .lengths import Lengths, are_lengths, count_words
from .live_buffer import LiveBuffer
from .sizes import Sizes
from .words import Padded, Words
