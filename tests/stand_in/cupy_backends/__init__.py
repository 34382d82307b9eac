"""What of ``cupy_backends`` is needed, beside the stand-in for ``cupy``."""
