"""Completion scripts for shells, from what command lines may hold."""

from typing import Dict, List, Sequence

from .completion import Line, Value

# The settings of a config file, as --section.key; sections of lists are left out.
_AWK = r"""awk '/^\[/ { gsub(/[][ ]/, ""); section = $0; next }
    section !~ /[*]/ && /^[A-Za-z_]+ *=/ { sub(/ *=.*/, ""); print "--" section "." $0 }'"""

_HEAD = "# Completes command lines of thincdialog; written by: thincdialog completion {shell}\n"

# Prints --section.key of every config or model that is among the words of the line.
_SETTINGS = """\
_thincdialog_settings() {{
  printf '%s\\n' {defaults}
  local word
  for word in "$@"; do
    [[ -d $word ]] && word=$word/config.cfg
    [[ $word == *.cfg && -f $word ]] && {awk} "$word"
  done
}}
"""

_BASH = """\
_thincdialog() {{
  local current=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}}
  local command=${{COMP_WORDS[1]}} options= settings= values= argument=
  COMPREPLY=()
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "{first} --help --version" -- "$current"))
    return
  fi
  case $command in
{aliases}
  esac
  case $command in
{groups}
  esac
  case $command in
{commands}
    *) return ;;
  esac
  case "$command $previous" in
{values}
    *\\ --*.*) [[ $settings ]] && values=FILES ;;
  esac
  if [[ ! $values && $current == -* ]]; then
    values=$options
    [[ $settings ]] && values+=" $(_thincdialog_settings "${{COMP_WORDS[@]:1}}")"
  fi
  values=${{values:-$argument}}
  case $values in
    FILES)
      compopt -o filenames 2> /dev/null
      local IFS=$'\\n'
      COMPREPLY=($(compgen -f -- "$current"))
      ;;
    NOTHING) ;;
    *) COMPREPLY=($(compgen -W "$values" -- "$current")) ;;
  esac
}}
complete -F _thincdialog thincdialog
"""

_ZSH = """\
_thincdialog() {{
  local current=$words[CURRENT] previous=$words[CURRENT-1] command=$words[2]
  local -a options argument values
  local settings=
  if ((CURRENT == 2)); then
    values=({first})
    _describe command values
    return
  fi
  case $command in
{aliases}
  esac
  case $command in
{groups}
  esac
  case $command in
{commands}
    *) return ;;
  esac
  case "$command $previous" in
{values}
    *\\ --*.*) [[ -n $settings ]] && values=(FILES) ;;
  esac
  if [[ -z $values && $current == -* ]]; then
    _describe -o option options
    [[ -n $settings ]] && compadd -- ${{(f)"$(_thincdialog_settings $words[2,-1])"}}
    return
  fi
  [[ -z $values ]] && values=($argument)
  case $values in
    FILES) _files ;;
    NOTHING) ;;
    *) compadd -- $values ;;
  esac
}}
if [[ $funcstack[1] == _thincdialog ]]; then
  _thincdialog "$@"
else
  compdef _thincdialog thincdialog
fi
"""

_FISH = """\
function __thincdialog_settings
    printf '%s\\n' {defaults}
    for word in (commandline -opc)
        test -d $word; and set word $word/config.cfg
        string match -q '*.cfg' -- $word; and test -f $word; and {awk} $word
    end
end
function __thincdialog_is
    set -l words (commandline -opc)
    set -e words[1]
    for name in $argv
        set -l parts (string split ' ' -- $name)
        test "$words[1..$(count $parts)]" = "$name"; and return 0
    end
    return 1
end
function __thincdialog_counts
    test (count (commandline -opc)) -eq $argv[1]
end
complete -c thincdialog -f
"""


def bash(lines: Sequence[Line], settings: Sequence[str]) -> str:
    """A script for bash.

    lines (Sequence[Line]): All commands.
    settings (Sequence[str]): Names of settings, such as "training.max_steps".
    """
    commands = []
    for line in lines:
        names = " ".join(name for option in line.options for name in option.names)
        set_settings = " settings=yes" if line.takes_settings else ""
        commands.append(
            f'    "{line.name}") options="{names}" argument="{_words(line.argument)}"'
            f"{set_settings} ;;"
        )
    groups = [
        f"    {group})\n"
        f'      ((COMP_CWORD == 2)) && COMPREPLY=($(compgen -W "{" ".join(seconds)}" --'
        ' "$current")) && return\n'
        '      command="$command ${COMP_WORDS[2]}" ;;'
        for group, seconds in _groups(lines).items()
    ]
    script = _BASH.format(
        first=" ".join(_first_words(lines)),
        aliases=_aliases(lines),
        groups="\n".join(groups),
        commands="\n".join(commands),
        values="\n".join(
            f'    {pattern}) values="{_words(value)}" ;;' for pattern, value in _valued(lines)
        ),
    )
    return _HEAD.format(shell="bash") + _settings(settings) + script


def zsh(lines: Sequence[Line], settings: Sequence[str]) -> str:
    """A script for zsh; arguments as of ``bash``."""
    commands = []
    for line in lines:
        options = " ".join(
            _quote(f"{name}:{option.about}") for option in line.options for name in option.names
        )
        set_settings = " settings=yes" if line.takes_settings else ""
        commands.append(
            f'    "{line.name}") argument=({_words(line.argument)}){set_settings}\n'
            f"      options=({options}) ;;"
        )
    groups = [
        f"    {group})\n"
        "      if ((CURRENT == 3)); then\n"
        f"        values=({' '.join(_quote(f'{n}:{about}') for n, about in seconds.items())})\n"
        "        _describe command values\n"
        "        return\n"
        "      fi\n"
        '      command="$command $words[3]" ;;'
        for group, seconds in _groups(lines).items()
    ]
    first = _first_words(lines)
    script = _ZSH.format(
        first=" ".join(_quote(f"{name}:{about}") for name, about in first.items()),
        aliases=_aliases(lines),
        groups="\n".join(groups),
        commands="\n".join(commands),
        values="\n".join(
            f"    {pattern}) values=({_words(value)}) ;;" for pattern, value in _valued(lines)
        ),
    )
    return "#compdef thincdialog\n" + _HEAD.format(shell="zsh") + _settings(settings) + script


def fish(lines: Sequence[Line], settings: Sequence[str]) -> str:
    """A script for fish; arguments as of ``bash``."""
    defaults = " ".join(f"--{name}" for name in settings)
    found = [_HEAD.format(shell="fish") + _FISH.format(defaults=defaults, awk=_AWK)]
    add = "complete -c thincdialog"
    for name, about in _first_words(lines).items():
        found.append(f"{add} -n '__thincdialog_counts 1' -a {name} -d {_quote(about)}")
    for group, seconds in _groups(lines).items():
        for name, about in seconds.items():
            condition = f"__thincdialog_counts 2; and __thincdialog_is {group}"
            found.append(f"{add} -n {_quote(condition)} -a {name} -d {_quote(about)}")
    for line in lines:
        names = " ".join(f'"{name}"' for name in (line.name, *line.aliases))
        start = f"{add} -n {_quote(f'__thincdialog_is {names}')}"
        found += [f"{start} {_fish_value(line.argument)}".rstrip()] if _words(line.argument) else []
        for option in line.options:
            spelt = " ".join(
                f"-l {name[2:]}" if name.startswith("--") else f"-s {name[1:]}"
                for name in option.names
            )
            value = ""
            if option.value is not None:
                value = f" {'-r' if option.value.is_file else '-x'} {_fish_value(option.value)}"
            found.append(f"{start} {spelt}{value.rstrip()} -d {_quote(option.about)}")
        if line.takes_settings:
            found.append(f"{start} -a '(__thincdialog_settings)'")
    return "\n".join(found) + "\n"


def _fish_value(value: Value) -> str:
    if value.choices:
        return f"-a {_quote(' '.join(value.choices))}"
    return "-F" if value.is_file else ""


def _settings(settings: Sequence[str]) -> str:
    defaults = " ".join(f"--{name}" for name in settings)
    return _SETTINGS.format(defaults=defaults, awk=_AWK)


def _words(value: Value) -> str:
    return " ".join(value.choices) or ("FILES" if value.is_file else "NOTHING")


def _first_words(lines: Sequence[Line]) -> Dict[str, str]:
    """The words that a command line can begin with, and what they do."""
    found: Dict[str, str] = {}
    groups = _groups(lines)
    for line in lines:
        first = line.name.split()[0]
        found[first] = ", ".join(groups[first]) if first in groups else line.about
        found.update(dict.fromkeys((name for name in line.aliases if len(name) > 1), line.about))
    return found


def _groups(lines: Sequence[Line]) -> Dict[str, Dict[str, str]]:
    groups: Dict[str, Dict[str, str]] = {}
    for line in lines:
        first, _, second = line.name.partition(" ")
        if second:
            groups.setdefault(first, {})[second] = line.about
    return groups


def _aliases(lines: Sequence[Line]) -> str:
    return "\n".join(
        f"    {'|'.join(line.aliases)}) command={line.name} ;;" for line in lines if line.aliases
    )


def _valued(lines: Sequence[Line]) -> List:
    """Patterns for a command and an option that takes a value, and the values."""
    return [
        ("|".join(f'"{line.name} {name}"' for name in option.names), option.value)
        for line in lines
        for option in line.options
        if option.value is not None
    ]


def _quote(text: str) -> str:
    """A text in single quotes, for any of the shells."""
    return "'" + text.replace("'", "’").replace("\\", "/") + "'"
