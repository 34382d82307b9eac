"""The limits of a server on requests."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """Hold the limits of a server.

    max_batch (int): Maximum number of tokens in a batch of messages, with padding.
    max_body (int): Maximum number of bytes of a request's body; more are refused with status 413.
    max_messages (int): Maximum number of messages, texts or documents in a request (413).
    max_characters (int): Maximum number of characters in all texts of a request together (413).
    max_waiting (int): Maximum number of requests that wait for a model; more are refused (429).
    max_seconds (float): Maximum number of seconds to receive a request (408) and answer it (503),
        together.
    """

    max_batch: int = 8192
    max_body: int = 1 << 20
    max_messages: int = 1000
    max_characters: int = 200_000
    max_waiting: int = 4096
    max_seconds: float = 30.0
