"""One BLAS thread for each worker: workers are parallel already."""

from threadpoolctl import threadpool_limits

from .process_wide import ProcessWide, Undo


def _limit() -> Undo:
    return threadpool_limits(1, user_api="blas").restore_original_limits


one_blas_thread = ProcessWide(_limit)


def limit_this_thread() -> None:
    """One BLAS thread for what this thread asks of BLAS: some libraries (OpenMP, MKL, BLIS)
    keep a number for each thread, which a new one does not inherit."""
    threadpool_limits(1, user_api="blas")
