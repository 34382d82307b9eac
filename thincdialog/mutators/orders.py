"""Put the words, lines or turns of conversations in another order, to see how much a model depends
on it."""

from typing import Callable, List

from ..messages import SILENCE, Episode, Message
from ..registry import registry
from .mutator import Mutator, random_of


@registry.mutators("thincdialog.WordReverse.v1")
def WordReverse() -> Mutator:
    """Reverse the words of every line, to see how much a model depends on their order.

    Labels are not changed. Before `thincdialog.Flatten.v1`, only the partner's turns are
    changed; after it, the whole context is, including the answers given so far.

    RETURNS (Mutator): Episode to an episode of as many turns.
    """
    return lambda episode: [[_with_words(turn, lambda words: words[::-1]) for turn in episode]]


@registry.mutators("thincdialog.WordShuffle.v1")
def WordShuffle(seed: int = 0) -> Mutator:
    """Shuffle the words of every line, to see how much a model depends on their order.

    An example is shuffled in the same way in every epoch. Labels are not changed. Before
    `thincdialog.Flatten.v1`, only the partner's turns are changed; after it, the whole
    context is, including the answers given so far.

    seed (int): Seed of the draws, together with the example's id.
    RETURNS (Mutator): Episode to an episode of as many turns.
    """

    def shuffled(message: Message) -> Message:
        draws = random_of(message, seed)
        return _with_words(message, lambda words: draws.sample(words, len(words)))

    return lambda episode: [[shuffled(message) for message in episode]]


@registry.mutators("thincdialog.ContextShuffle.v1")
def ContextShuffle(seed: int = 0) -> Mutator:
    """Shuffle the lines before the last one of each text, such as a persona, and the turns of
    `context`, to see how much a model depends on their order.

    The last line, which the agent replies to, stays last; labels do not change. An example is
    shuffled in the same way in every epoch. To shuffle the turns of a conversation, put this
    mutator after `thincdialog.Flatten.v1`; each turn keeps its speaker.

    seed (int): Seed of the draws, together with the example's id.
    RETURNS (Mutator): Episode to an episode of as many turns.
    """

    def shuffled(message: Message) -> Message:
        draws = random_of(message, seed)
        *lines, last = message["text"].split("\n")
        draws.shuffle(lines)
        changed = Message(message, text="\n".join([*lines, last]))
        if "context" in message:
            changed["context"] = draws.sample(message["context"], len(message["context"]))
        return changed

    return lambda episode: [[shuffled(message) for message in episode]]


@registry.mutators("thincdialog.EpisodeReverse.v1")
def EpisodeReverse(keep_context: bool = True) -> Mutator:
    """Reverse the order of the partner's texts, to see how much a model depends on the course
    of a conversation. Labels and all other fields stay where they are.

    Put it before `thincdialog.Flatten.v1`: it does not change episodes of one turn.

    keep_context (bool): Leave the lines before the last one of the first text (a persona) in place.
    RETURNS (Mutator): Episode to an episode of as many turns.
    """
    return lambda episode: [_with_texts_moved(episode, keep_context, lambda texts: texts[::-1])]


@registry.mutators("thincdialog.EpisodeShuffle.v1")
def EpisodeShuffle(seed: int = 0, keep_context: bool = True) -> Mutator:
    """Shuffle the partner's texts within their episode, to see how much a model depends on
    the course of a conversation. Labels and all other fields stay where they are.

    An episode is shuffled in the same way in every epoch. Put it before
    `thincdialog.Flatten.v1`: it does not change episodes of one turn.

    seed (int): Seed of the draws, together with the id of the episode's first example.
    keep_context (bool): Leave the lines before the last one of the first text (a persona) in place.
    RETURNS (Mutator): Episode to an episode of as many turns.
    """

    def shuffled(episode: Episode) -> List[Episode]:
        draws = random_of(episode[0] if episode else Message(), seed)
        reorder = lambda texts: draws.sample(texts, len(texts))  # noqa: E731
        return [_with_texts_moved(episode, keep_context, reorder)]

    return shuffled


def _with_words(message: Message, reorder: Callable[[List[str]], List[str]]) -> Message:
    """Copy a message with the words of each line of `text` and `context` in another order.

    message (Message): The message, which is not changed.
    reorder (Callable): Takes the words of one line, split at spaces, and returns them in
        their new order.
    """

    def reordered(text: str) -> str:
        return "\n".join(" ".join(reorder(line.split(" "))) for line in text.split("\n"))

    changed = Message(message, text=reordered(message["text"]))
    if "context" in message:
        changed["context"] = [(role, reordered(said)) for role, said in message["context"]]
    return changed


def _with_texts_moved(
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
