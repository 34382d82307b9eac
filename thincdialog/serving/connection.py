"""Connections that limit the time and size of request heads, which Uvicorn does not limit."""

from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

# Maximum number of bytes of the lines before a body.
MAX_HEAD = 1 << 16


class Connection(HttpToolsProtocol):
    """Close a connection if the head of a request is too long, or takes longer than
    ``timeout_keep_alive`` to arrive. The time of the first request begins with the connection, and
    that of further requests with their first byte."""

    late: Any = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self.data_received(b"")

    def data_received(self, data: bytes) -> None:
        if self.late is None and not (self.cycle and self.cycle.more_body):
            given = (self.timeout_keep_alive, self.timeout_keep_alive_handler)
            self.n_head, self.late = 0, self.loop.call_later(*given)
        self.n_head += len(data)
        super().data_received(data)
        if self.late and self.n_head > MAX_HEAD and not self.transport.is_closing():
            self.send_400_response(f"The request's header has more than {MAX_HEAD:,} bytes.")

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        if self.late:
            self.late.cancel()
        self.late = None
