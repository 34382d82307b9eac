"""Learning-rate schedules beside Thinc's own."""

from . import plateau, warmup, watched
