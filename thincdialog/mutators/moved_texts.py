"""Changes the order of an episode's texts, and of nothing else."""

from typing import Callable, List

from ..messages import SILENCE, Episode, Message


def with_texts_moved(
    episode: Episode, keep_context: bool, reorder: Callable[[List[str]], List[str]]
) -> Episode:
    """A copy whose texts stand in another order; all other fields stay where they are.

    Silence (`__SILENCE__`) before an opening is no turn and stays, too.

    episode (Episode): Stays as it is.
    keep_context (bool): Whether the first text's lines but its last stay first.
    reorder (Callable): Gives the texts anew.
    """
    texts = [message["text"] for message in episode]
    opening = ""
    if keep_context and texts:
        lines, line_end, texts[0] = texts[0].rpartition("\n")
        opening = lines + line_end
    places = [place for place, text in enumerate(texts) if text != SILENCE]
    for place, text in zip(places, reorder([texts[place] for place in places])):
        texts[place] = text
    if opening:
        texts[0] = opening + texts[0]
    return [Message(message, text=text) for message, text in zip(episode, texts)]
