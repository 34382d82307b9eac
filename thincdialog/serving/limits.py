"""How much a server accepts."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """The limits of a server.

    max_batch (int): Tokens that are answered in one batch, with padding.
    max_body (int): Bytes of a request; more are refused with status 413.
    max_messages (int): Messages of a request, or its texts or documents (413).
    max_characters (int): Characters of a request in all texts together (413).
    max_waiting (int): Requests that may wait for a model; more are refused (429).
    max_seconds (float): Seconds to receive a request (else 408) and answer it (else 503), together.
    """

    max_batch: int = 8192
    max_body: int = 1 << 20
    max_messages: int = 1000
    max_characters: int = 200_000
    max_waiting: int = 4096
    max_seconds: float = 30.0
