"""thincdialog: train dialogue models from config files, on Thinc."""

__version__ = "0.1.0"
