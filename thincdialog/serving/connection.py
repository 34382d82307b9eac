"""Connections whose requests begin in time: Uvicorn waits for ever, and takes heads of any size."""

import asyncio
from typing import Any, Optional

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# Bytes of the lines before a body.
MAX_HEAD = 1 << 16


class Connection(HttpToolsProtocol):
    """A connection that is closed if the head of a request does not arrive in time, or is too long.

    max_seconds (float): From the connection, or the first byte of a further request.
    **given (Any): Of Uvicorn.
    """

    def __init__(self, max_seconds: float, **given: Any):
        super().__init__(**given)
        self.max_seconds, self.n_head, self.is_head = max_seconds, 0, True
        self.late: Optional[asyncio.TimerHandle] = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.late = self.loop.call_later(self.max_seconds, transport.close)

    def connection_lost(self, exc: Optional[Exception]) -> None:
        self._arrived()
        super().connection_lost(exc)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.is_head = True

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        self.is_head = False
        self._arrived()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.is_head and not self.transport.is_closing():
            self.n_head += len(data)
            if self.late is None:
                self.late = self.loop.call_later(self.max_seconds, self.transport.close)
            if self.n_head > MAX_HEAD:
                self.send_400_response(f"The head of the request has more than {MAX_HEAD:,} bytes.")

    def _arrived(self) -> None:
        self.n_head = 0
        if self.late is not None:
            self.late.cancel()
            self.late = None
