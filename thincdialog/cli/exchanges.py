"""Show conversations with a model's replies."""

from typing import Any, Sequence

from .output import shorten


def show_exchanges(conversations: Sequence[Sequence[Any]], limit: int = 200) -> None:
    """Print conversations: the partner's text, the reply, and the label if it differs.

    limit (int): Number of characters to show of each text; 0 for all.
    """
    from ..evaluation.predictions import is_right

    for exchanges in conversations:
        print()
        for message, reply in exchanges:
            for text in (message.get("text") or "(no text)").split("\n"):
                print(f"  partner  {shorten(text, limit)}")
            answer = reply.get("text") or ""
            labels = list(message.all_labels)
            sign = " " if not labels else "=" if is_right(reply, labels) else "x"
            print(f"{sign} model    {shorten(answer, limit)}")
            if sign == "x":
                print(f"  label    {shorten(' | '.join(labels), limit)}")
