"""EpisodeReverse: the partner's turns backwards."""

from typing import Callable, List

from ..messages import SILENCE, Episode, Message
from ..registry import registry
from .mutator import Mutator


@registry.mutators("thincdialog.EpisodeReverse.v1")
def EpisodeReverse(keep_context: bool = True) -> Mutator:
    """Turn the order of the partner's texts around, to see how much a model makes of the
    course of a conversation. Labels and all else stay where they are.

    Put it before `thincdialog.Flatten.v1`: an episode of one turn stays as it is.

    keep_context (bool): Leave the first text's lines but its last (a persona) where they are.
    RETURNS (Mutator): Episode to an episode of as many turns.
    """
    return lambda episode: [with_texts_moved(episode, keep_context, lambda texts: texts[::-1])]


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
