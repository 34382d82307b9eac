"""Waiting and computing are told apart."""

import time

from thincdialog.loader.clocks import NO_TIME, Spent


def test_clocks_tell_sleep_from_work():
    begin = Spent.now()
    time.sleep(0.2)
    asleep = Spent.now().since(begin)
    assert asleep.waiting > 0.1 > asleep.computing
    begin = Spent.now()
    while time.thread_time() < begin.computing + 0.2:
        pass
    at_work = Spent.now().since(begin)
    assert at_work.computing >= 0.2 and at_work.waiting < 0.5 * at_work.wall
    both = NO_TIME.plus(asleep).plus(at_work)
    assert both.wall == asleep.wall + at_work.wall
