"""Learning-rate schedules in addition to Thinc's own."""

from . import plateau, warmup, watched
