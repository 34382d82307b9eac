from threadpoolctl import threadpool_info, threadpool_limits

from thincdialog.parallel.blas_threads import OneBlasThread


def n_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_blas_threads_are_one_until_the_last_has_ended():
    one = OneBlasThread()
    with threadpool_limits(2, user_api="blas"):
        one.begin()
        one.begin()
        assert n_threads() == {1}
        one.end()
        assert n_threads() == {1}
        one.end()
        assert n_threads() == {2}
        one.begin()
        assert n_threads() == {1}
        one.end()
        assert n_threads() == {2}
