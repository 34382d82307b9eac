"""The acts of a parley as text for users."""

from typing import Any, Callable, Iterator, List, Sequence

from ..messages import Message

# Maximum number of characters of a text. Longer texts are cut.
MAX_CHARACTERS = 1000
END = "- - - - - - - END OF EPISODE - - - - - - -"


# Function that returns the name of a message's speaker.
Speaker = Callable[[Message], str]


def display_acts(speakers: Sequence[Speaker], acts: Sequence[Any], most: int) -> str:
    """Format the acts of a parley as lines with the speaker, the text, and the right replies.

    speakers (Sequence[Speaker]): For each agent, the function that names the speaker.
    acts (Sequence): For each agent, a message, or a sequence with a message of each conversation.
    most (int): Maximum number of conversations that are shown; a last line gives the number of the
        others.
    RETURNS (str): The lines; "" before the first parley.
    """
    if not acts:
        return ""
    if isinstance(acts[0], Message):
        return "\n".join(_conversation(speakers, acts))
    parts: List[str] = []
    for number in range(min(most, len(acts[0]))):
        parts += _conversation(speakers, [of_agent[number] for of_agent in acts])
    if len(acts[0]) > most:
        parts.append(f"... and {len(acts[0]) - most:,} more conversations")
    return "\n".join(parts)


def _conversation(speakers: Sequence[Speaker], acts: Sequence[Message]) -> Iterator[str]:
    is_over = False
    for place, (speaker, act) in enumerate(zip(speakers, acts)):
        # Replies are indented.
        space = "   " if place else ""
        yield f"{space}[{speaker(act)}]: {_short(act.get('text') or '(no text)')}"
        for field in ("labels", "eval_labels"):
            if act.get(field):
                yield f"   [{field}: {_short(' | '.join(act[field]))}]"
        is_over = is_over or bool(act.get("episode_done"))
    if is_over:
        yield END


def _short(text: str) -> str:
    return text if len(text) <= MAX_CHARACTERS else f"{text[:MAX_CHARACTERS]}..."
