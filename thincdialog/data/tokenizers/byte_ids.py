"""Texts as bytes: any text, also one with lone surrogates, survives the way and back."""

N_BYTES = 256


def to_bytes(text: str) -> bytes:
    """UTF-8; lone surrogates become the three bytes they would have."""
    return text.encode("utf-8", "surrogatepass")


def from_bytes(data: bytes) -> str:
    """The text of bytes; what is no text at all becomes U+FFFD."""
    try:
        return data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return data.decode("utf-8", "replace")
