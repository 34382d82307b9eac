"""One BLAS thread for each worker: workers are parallel already."""

import threading
from typing import Optional

from threadpoolctl import threadpool_limits


class OneBlasThread:
    """One BLAS thread in this process between ``begin`` and ``end``, however many begin
    and end, in whatever order; then as many as before the first."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_begun = 0
        self._limits: Optional[threadpool_limits] = None

    def begin(self) -> None:
        """From now on."""
        with self._lock:
            if not self._n_begun:
                self._limits = threadpool_limits(1, user_api="blas")
            self._n_begun += 1

    def end(self) -> None:
        """One fewer wants it. To be called once for each ``begin``."""
        with self._lock:
            self._n_begun -= 1
            if not self._n_begun and self._limits is not None:
                self._limits.restore_original_limits()
                self._limits = None


one_blas_thread = OneBlasThread()


def limit_this_thread() -> None:
    """One BLAS thread for what this thread asks of BLAS: some libraries (OpenMP, MKL, BLIS)
    keep a number for each thread, which a new one does not inherit."""
    threadpool_limits(1, user_api="blas")
