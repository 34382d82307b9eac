"""Apply mutators to the episodes of a split, and check that they return episodes."""

import copy
from itertools import chain
from typing import Any, Callable, Iterable, Iterator, Union

from ..contract import is_users, place_of
from ..errors import ConfigError, DataError, Problem
from ..formats.wording import short
from ..messages import FIELDS, Episode, Message, is_message

Source = Callable[[], Iterable[Episode]]
_WANTED = f"a list of episodes, each a list of Message objects with an id {FIELDS}"


def own_mutator(mutator: Any) -> Any:
    """Return the mutator for a split: a copy if it rewrites the whole split, because such a
    mutator may keep state.

    RAISES (ConfigError): If the value is not a mutator.
    """
    if hasattr(mutator, "rewrite"):
        return copy.copy(mutator)
    # Thinc models are callable, too. They are recognized by name, so that reading data does not
    # import Thinc.
    is_model = any(kind.__module__ == "thinc.model" for kind in type(mutator).__mro__)
    if not callable(mutator) or is_model:
        text = f"{short(mutator)} ({type(mutator).__name__}) is not a mutator"
        hint = (
            "let its registered function return a function that takes an episode and returns a "
            "list of episodes"
        )
        raise ConfigError([Problem("", text, hint)])
    return mutator


def mutated(mutator: Any, read: Source, split: str, origin: str) -> Iterator[Episode]:
    """Apply a mutator to the episodes of a split, and return an iterator over the episodes that it
    returns.

    mutator (Any): Mutator from ``own_mutator``. Errors that it raises are not changed.
    read (Source): Reads the episodes.
    split (str): Name of the split.
    origin (str): Description of the data, for error messages.
    RAISES (DataError): If a custom mutator returns anything else.
    """
    not_empty = lambda: filter(None, read())  # noqa: E731
    rewrites = hasattr(mutator, "rewrite")
    is_own = is_users(mutator.rewrite if rewrites else mutator)
    if rewrites:
        made = mutator.rewrite(not_empty, split)
        return _checked(made, mutator, split, origin) if is_own else made
    if is_own:
        each = lambda one: _checked(mutator(one), mutator, one, origin)  # noqa: E731
        return chain.from_iterable(map(each, not_empty()))
    return chain.from_iterable(map(mutator, not_empty()))


def _checked(made: Any, mutator: Any, given: Union[str, Episode], origin: str) -> Iterator[Episode]:
    """Check the episodes that a custom mutator returned, and yield them.

    given (Union[str, Episode]): Name of the split, or the episode, that was passed to the mutator.
    """
    # Most mutators return a list. isinstance with a type from typing would take more time than
    # all other checks, so it comes second.
    is_iterable = isinstance(made, list) or isinstance(made, Iterable)
    if not is_iterable or isinstance(made, (str, dict)):
        raise _error(mutator, made, given, origin)
    for episode in made:
        if not isinstance(episode, list) or not all(map(_is_good, episode)):
            raise _error(mutator, episode, given, origin, "among others ")
        yield list(episode)  # The mutator may use the same list for the next episode.


def _is_good(message: Any) -> bool:
    return isinstance(message, Message) and "id" in message and is_message(message)


def _error(
    mutator: Any, made: Any, given: Union[str, Episode], origin: str, part: str = ""
) -> DataError:
    where = place_of(mutator if callable(mutator) else mutator.rewrite)
    of = f"the split '{given}'"
    if not isinstance(given, str):
        of = f"the episode of {short(given[0]['id'])}"
    what = f"returned {part}{short(made)} ({type(made).__name__}) for {of}"
    return DataError(origin, f"the mutator {where} {what}: expected {_WANTED}")
