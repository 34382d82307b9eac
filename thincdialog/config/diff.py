"""The differences of a config from the defaults, or from another config."""

from pathlib import Path
from typing import Any, Dict, List, Literal, Mapping, NamedTuple, Optional, Tuple

from ..errors import ConfigError, Problem
from .blocks import fill_functions, reference_of
from .code import CodeLike, load_code
from .given import default_data
from .load import AnyConfig, load_config
from .source import read_source
from .write import write_config

FILE = "config.cfg"
# Paths of the config in the folder of a run or of a saved model.
PLACES = (FILE, f"model-best/{FILE}", f"model-last/{FILE}")

Kind = Literal["same", "changed", "added", "removed"]


class Difference(NamedTuple):
    """Describe a setting that is in at least one of two configs.

    section (str): Dotted name of the section.
    key (str): Name of the setting in the section.
    kind (str): "same", "changed", "added" (only the config has it) or "removed".
    new (Optional[str]): Text of the value in the config; None if it is not there.
    old (Optional[str]): Text of the value in the other config; None if it is not there.
    """

    section: str
    key: str
    kind: Kind
    new: Optional[str]
    old: Optional[str]


def diff_config(
    config: AnyConfig,
    compare_to: Optional[AnyConfig] = None,
    *,
    overrides: Optional[Mapping[str, Any]] = None,
    code: CodeLike = None,
) -> List[Difference]:
    """Compare two complete configs setting by setting. Settings that a file leaves out have their
    defaults. Variables are compared as written.

    config (ConfigLike): A path, a text, a Config, a dict, or the folder of a saved model or of a
        run.
    compare_to (ConfigLike): The other config. None for the defaults: those of the sections, and
        those of the functions that the config names.
    overrides (Optional[Mapping[str, Any]]): Settings to change in ``config``.
    code (CodeLike): Python file or files that register functions named in the configs.
    RETURNS (List[Difference]): All settings in the order of the config, with the removed settings
        last in each section; then the sections that the config does not have.
    RAISES (ConfigError): If a config has problems; lists all of them.
    """
    load_code(code)
    checked = load_config(in_folder(config), overrides)
    if compare_to is None:
        other = _defaults_for(checked.config, fill_functions(default_data()))
    else:
        other = load_config(in_folder(compare_to)).config
    new, old = _lines(checked.config), _lines(other)
    places = list(dict.fromkeys([*new, *old]))
    sections = list(dict.fromkeys(section for section, _ in places))
    found = []
    for place in sorted(places, key=lambda place: sections.index(place[0])):
        kind: Kind = "added" if place not in old else "removed"
        if place in new and place in old:
            kind = "same" if new[place] == old[place] else "changed"
        found.append(Difference(*place, kind, new.get(place), old.get(place)))
    return found


def in_folder(config: AnyConfig) -> AnyConfig:
    """Return the config of a saved model or a run if its folder is given; otherwise the config
    itself.

    RAISES (ConfigError): If the folder has no config.
    """
    if not isinstance(config, (str, Path)) or (isinstance(config, str) and "\n" in config):
        return config
    folder = Path(config)
    if not folder.is_dir():
        return config
    found = next((folder / place for place in PLACES if (folder / place).is_file()), None)
    if found is None:
        hint = f"give a config, or the folder of a saved model: it holds {FILE}"
        raise ConfigError([Problem("", f"there is no config in the folder '{folder}'", hint)])
    return found


def _defaults_for(section: Dict[str, Any], known: Any) -> Dict[str, Any]:
    """Return the default settings of a section whose blocks have the functions that it names.

    section (Dict[str, Any]): The section.
    known (Any): Default of the section; not a dict if it has none.
    """
    base = dict(known) if isinstance(known, dict) else {}
    reference = reference_of(section)
    if reference and base.get(reference) != section[reference]:
        # The defaults are those of the named function; only its name differs.
        usual = {key: value for key, value in base.items() if key.startswith("@")}
        base = fill_functions({reference: section[reference]})
        base = {**usual, **{key: base[key] for key in base if key != reference}}
    for key, value in section.items():
        if isinstance(value, dict) and value:
            base[key] = _defaults_for(value, base.get(key))
            if not base[key]:
                del base[key]
    return base


def _lines(config: Mapping[str, Any]) -> Dict[Tuple[str, str], str]:
    """Return section and key to the text of the value, in the order of a written config."""
    sections = read_source(write_config(config)).sections.values()
    return {(s.name, key): entry.raw for s in sections for key, entry in s.entries.items()}
