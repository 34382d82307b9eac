"""Settings given on the command line as ``--section.key value``."""

from typing import Dict, List, Tuple


def split_overrides(arguments: List[str]) -> Tuple[List[str], Dict[str, str]]:
    """Take the dotted options out of a command line, at any position.

        ["--a.b", "3", "x.cfg", "--c.d=e"]  ->  ["x.cfg"], {"a.b": "3", "c.d": "e"}

    An option followed by another option, or by nothing, has the value "true". Dashes in the name
    mean underscores. Words after ``--`` are not taken.

    arguments (List[str]): The command line.
    RETURNS (Tuple[List[str], Dict[str, str]]): The remaining words, and option name to text.
    """
    rest: List[str] = []
    found: Dict[str, str] = {}
    index = 0
    while index < len(arguments):
        argument = arguments[index]
        index += 1
        if argument == "--":
            return [*rest, *arguments[index - 1 :]], found
        name, equals, value = argument.partition("=")
        if not name.startswith("--") or "." not in name:
            rest.append(argument)
            continue
        if not equals:
            value = "true"
            if index < len(arguments) and not _is_option(arguments[index]):
                value = arguments[index]
                index += 1
        found[name[2:].replace("-", "_")] = value
    return rest, found


def _is_option(argument: str) -> bool:
    """Return whether an argument is an option, not a value such as ``-1`` or ``-.5``."""
    if not argument.startswith("-") or argument == "-":
        return False
    try:
        float(argument)
        return False
    except ValueError:
        return " " not in argument
