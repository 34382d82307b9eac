"""EpisodeReverse: put the partner's turns in reverse order."""

from typing import Callable, List

from ..messages import SILENCE, Episode, Message
from ..registry import registry
from .mutator import Mutator


@registry.mutators("thincdialog.EpisodeReverse.v1")
def EpisodeReverse(keep_context: bool = True) -> Mutator:
    """Reverse the order of the partner's texts, to see how much a model depends on the course
    of a conversation. Labels and all other fields stay where they are.

    Put it before `thincdialog.Flatten.v1`: it does not change episodes of one turn.

    keep_context (bool): Leave the lines before the last one of the first text (a persona) in place.
    RETURNS (Mutator): Episode to an episode of as many turns.
    """
    return lambda episode: [with_texts_moved(episode, keep_context, lambda texts: texts[::-1])]


def with_texts_moved(
    episode: Episode, keep_context: bool, reorder: Callable[[List[str]], List[str]]
) -> Episode:
    """Copy an episode with its texts in another order; all other fields stay where they are.

    Silence (`__SILENCE__`) before an opening is not a turn and stays where it is, too.

    episode (Episode): The episode, which is not changed.
    keep_context (bool): Whether the lines before the last one of the first text stay first.
    reorder (Callable): Takes the texts and returns them in their new order.
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
