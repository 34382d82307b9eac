"""Copies beside a device's work: nothing is written over that is still wanted."""

import numpy as np
import pytest

from tests.ops.array_backends import backend
from thincdialog.ops.copies_ahead import CopiesAhead
from thincdialog.ops.known_numbers import derived

pytestmark = pytest.mark.gpu


def sent(copies, xp, numbers):
    """What is sent, as whoever computes may read it."""
    numbers = np.asarray(numbers, dtype="u1")
    room = copies.room(len(numbers))
    room.host[:] = numbers
    array, copied = copies.send(room)
    return array, copied


def test_copies_ahead_keep_what_somebody_has():
    with backend(0) as ops:
        xp, copies, held = ops.xp, CopiesAhead(ops.xp), []
        for number in range(40):
            copies.let_go()
            held.append(sent(copies, xp, [number] * (7 if number < 20 else 200_000)))
            held = held[-2:]
            for _, copied in held:
                xp.cuda.get_current_stream().wait_event(copied)
            found = [int(array.max()) for array, _ in held]
            assert found == [number - 1, number][-len(held) :]
        # One more than are held at once.
        assert len(copies._slots) == 3


def test_copies_ahead_one_that_is_not_used_holds_no_room():
    with backend(0) as ops:
        copies = CopiesAhead(ops.xp)
        for number in range(5):
            copies.let_go()
            sent(copies, ops.xp, [number])
        array, copied = sent(copies, ops.xp, [9])
        ops.xp.cuda.get_current_stream().wait_event(copied)
        assert array.tolist() == [9] and len(copies._slots) == 2


def sums(array, n):
    return (array.cumsum(), np.full(n, array.max()))


def test_copies_ahead_bring_what_was_derived_of_the_last_batch():
    with backend(0) as ops:
        known, copies, rng = ops.known_numbers, CopiesAhead(ops.xp), np.random.default_rng(0)
        for step in range(4):
            copies.let_go()
            numbers = rng.integers(99, size=5 + step)
            asked, stream = known.asked(), (0, step, 0)
            packed = known.pack("role", [numbers], asked, stream, copies)
            (array,) = known.use(packed)
            assert len(packed.ready) == (step > 0)
            found = derived(ops, sums, array, 3)
            assert [each.get().tolist() for each in found] == [
                each.tolist() for each in sums(numbers, 3)
            ]
