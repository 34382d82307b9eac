import sys

from thincdialog.parallel.blas_threads import one_blas_thread
from thincdialog.parallel.process_wide import SWITCH_SECONDS, frequent_switches
from threadpoolctl import threadpool_info, threadpool_limits


def n_threads():
    return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}


def test_blas_threads_are_one_until_the_last_has_ended():
    with threadpool_limits(2, user_api="blas"):
        one_blas_thread.begin()
        one_blas_thread.begin()
        assert n_threads() == {1}
        one_blas_thread.end()
        assert n_threads() == {1}
        one_blas_thread.end()
        assert n_threads() == {2}
        one_blas_thread.begin()
        assert n_threads() == {1}
        one_blas_thread.end()
        assert n_threads() == {2}


def test_threads_switch_often_until_the_last_has_ended():
    before = sys.getswitchinterval()
    assert before > SWITCH_SECONDS
    frequent_switches.begin()
    frequent_switches.begin()
    frequent_switches.end()
    assert abs(sys.getswitchinterval() - SWITCH_SECONDS) < 1e-5
    frequent_switches.end()
    assert sys.getswitchinterval() == before
