"""Learning-rate schedules that warm up, beside Thinc's own."""

from . import warmup, watched
