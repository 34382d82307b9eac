"""Whole Python values over a socket to another process."""

import pickle
import socket
import struct
from typing import Any, List

HEAD = struct.Struct(">Q")
CHUNK = 1 << 16


def pack(value: Any) -> bytes:
    """A value as it goes over a channel."""
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    return HEAD.pack(len(data)) + data


class Channel:
    """One end of a connection with a process of our own. No value is ever waited for in
    its middle, so one that stops there cannot hold the other up. (Values are pickled: it
    is for processes that we have started, not for anything from outside.)

    end (socket.socket): Connected; non-blocking where ``receive`` must not wait.
    """

    def __init__(self, end: socket.socket):
        self.end = end
        self._data = bytearray()

    def fileno(self) -> int:
        """For selectors."""
        return self.end.fileno()

    def send(self, packed: bytes, seconds: float) -> None:
        """Send what ``pack`` gave.

        seconds (float): How long it may take.
        RAISES (OSError): If the other end is gone, or did not take it in that time; then
            nothing more can be sent.
        """
        before = self.end.gettimeout()
        try:
            sent = self.end.send(packed)
        except BlockingIOError:
            sent = 0
        if sent < len(packed):
            self.end.settimeout(seconds)
            try:
                self.end.sendall(memoryview(packed)[sent:])
            finally:
                self.end.settimeout(before)

    def receive(self) -> List[Any]:
        """The values that are there whole. Waits only if the socket does, and then until
        something has come.

        RAISES (EOFError): If the other end is gone.
        """
        try:
            chunk = self.end.recv(CHUNK)
        except BlockingIOError:
            return []
        except ConnectionError:
            raise EOFError("the other end is gone") from None
        if not chunk:
            raise EOFError("the other end is gone")
        data = self._data
        data += chunk
        values = []
        while len(data) >= HEAD.size:
            (size,) = HEAD.unpack_from(data)
            if len(data) < HEAD.size + size:
                break
            with memoryview(data) as view:
                values.append(pickle.loads(view[HEAD.size : HEAD.size + size]))
            del data[: HEAD.size + size]
        return values

    def close(self) -> None:
        """Let go of it: the other end sees that."""
        self.end.close()
