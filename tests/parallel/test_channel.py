import os
import socket
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from thincdialog.parallel.channel import CHUNK, HEAD, Channel, pack


@pytest.fixture
def ends():
    left, right = socket.socketpair()
    left.setblocking(False)
    with left, right:
        yield Channel(left), right


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=30), max_size=8), st.integers(1, 40))
def test_channel_values_come_whole_however_they_are_cut(values, size):
    left, right = socket.socketpair()
    left.setblocking(False)
    with left, right:
        channel = Channel(left)
        data = b"".join(map(pack, values))
        received = []
        for start in range(0, len(data), size):
            right.sendall(data[start : start + size])
            received += channel.receive()
        assert received == values
        assert channel.receive() == []


def test_channel_does_not_wait_for_the_rest_of_a_value(ends):
    channel, other = ends
    packed = pack("x" * 1000)
    other.sendall(packed[:500])
    began = time.monotonic()
    assert channel.receive() == channel.receive() == []
    assert time.monotonic() - began < 1
    other.sendall(packed[500:])
    assert channel.receive() == ["x" * 1000]


def test_channel_large_values_pass(ends):
    channel, other = ends
    value = os.urandom(20 * CHUNK)
    back = []

    def read() -> None:
        reader = Channel(other)
        while not back:
            back.extend(reader.receive())

    thread = threading.Thread(target=read)
    thread.start()
    channel.send(pack(value), 20)
    thread.join(20)
    assert back == [value]
    assert channel.receive() == []  # Still does not wait.


def test_channel_sends_in_bounded_time(ends):
    channel, _ = ends
    began = time.monotonic()
    with pytest.raises(TimeoutError):
        channel.send(pack(bytes(50 * CHUNK)), 0.3)
    assert 0.3 <= time.monotonic() - began < 3


def test_channel_the_other_end_is_gone(ends):
    channel, other = ends
    other.sendall(pack("last") + HEAD.pack(100))
    other.close()
    assert channel.receive() == ["last"]
    with pytest.raises(EOFError):
        channel.receive()
    with pytest.raises(OSError):
        channel.send(pack("nobody"), 1)
