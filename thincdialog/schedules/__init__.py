"""Learning-rate schedules that warm up, beside Thinc's own."""

from . import warmup_cosine, warmup_inverse_sqrt, warmup_linear

__all__ = ["warmup_cosine", "warmup_inverse_sqrt", "warmup_linear"]
