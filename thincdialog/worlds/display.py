"""What was said in a parley, as text for people."""

from typing import Any, Iterator, List, Sequence

from ..messages import Message

# Letters of a text that are shown.
MAX_LETTERS = 1000
END = "- - - - - - - END OF EPISODE - - - - - - -"


def display_acts(names: Sequence[str], acts: Sequence[Any], most: int) -> str:
    """The acts of a parley, a line each: who said what, and what would have been right.

    names (Sequence[str]): Of the agents.
    acts (Sequence): One entry for each agent: a message, or a sequence of messages, one for
        each conversation.
    most (int): Conversations that are shown; of more, their number is told.
    RETURNS (str): "" if nothing was said yet.
    """
    if not acts:
        return ""
    if isinstance(acts[0], Message):
        return "\n".join(_conversation(names, acts))
    parts: List[str] = []
    for number in range(min(most, len(acts[0]))):
        parts += _conversation(names, [of_agent[number] for of_agent in acts])
    if len(acts[0]) > most:
        parts.append(f"... and {len(acts[0]) - most:,} more conversations")
    return "\n".join(parts)


def _conversation(names: Sequence[str], acts: Sequence[Message]) -> Iterator[str]:
    is_over = False
    for place, (name, act) in enumerate(zip(names, acts)):
        # Replies stand a little to the right.
        space = "   " if place else ""
        yield f"{space}[{act.get('agent') or name}]: {_short(act.get('text') or '(no text)')}"
        for field in ("labels", "eval_labels"):
            if act.get(field):
                yield f"   [{field}: {_short(' | '.join(act[field]))}]"
        is_over = is_over or bool(act.get("episode_done"))
    if is_over:
        yield END


def _short(text: str) -> str:
    return text if len(text) <= MAX_LETTERS else f"{text[:MAX_LETTERS]}..."
