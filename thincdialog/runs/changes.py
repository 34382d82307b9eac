"""Checks that a run can resume, although its config and data may have changed since it began."""

from fnmatch import fnmatchcase
from typing import Any, Dict, List, Mapping, NamedTuple, Sequence

from ..config.given import default_data
from ..errors import ConfigError, DataError, Problem
from ..files.fingerprint import Print, fingerprint
from ..formats.text_file import check_readable
from ..loggers.values import leaves
from ..messages import SPLITS
from ..training.experiment import Experiment

# Settings that change only where and how the same results are computed.
SAME_OUTCOME = (
    "system.gpu_id", "system.ops", "loader.store", "loader.workers", "loader.start_method",
    "training.logger*",
)  # fmt: skip
# Settings that do not affect the steps made so far.
HARMLESS = (
    *SAME_OUTCOME,
    "paths.*", "evaluation.world*", "baselines.*", "tasks.*.test", "training.max_*",
    "training.min_steps", "training.eval_every_*", "training.log_every_*",
    "training.checkpoint_*", "training.patience", "training.target_score",
    "training.n_samples", "training.callbacks.*",
)  # fmt: skip
# Settings that can be added, because they do not change the metrics measured so far.
ADDABLE = ("evaluation.metrics.*",)
MISSING = "(none)"

# Split, or "agent", to section to the sizes and checksums of its files.
Prints = Mapping[str, Mapping[str, List[Print]]]

# Files that must not change, and the reason. Test files may change, because training does not
# depend on them.
FIXED = {"train": "", "dev": ", and its scores choose the best model", "agent": ""}
TO_RESUME = "give the same data to resume, or start another run with another --output"


class Change(NamedTuple):
    """Describe a setting that differs.

    name (str): Dotted name.
    old (Any): Value in the run.
    new (Any): Value in the config now.
    """

    name: str
    old: Any
    new: Any

    def __str__(self) -> str:
        return f"{self.name} {self.old!r} -> {self.new!r}"


def flat(config: Mapping[str, Any]) -> Dict[str, Any]:
    """Return the settings of a config by their dotted names, with lists instead of tuples."""
    found = leaves(config)
    return {name: list(value) if isinstance(value, tuple) else value for name, value in found}


def changes_of(old: Mapping[str, Any], new: Mapping[str, Any]) -> List[Change]:
    """Return the settings that differ. Arguments are as ``flat`` returns them."""
    return [
        Change(name, old.get(name, MISSING), new.get(name, MISSING))
        for name in {**new, **old}
        if (name in old) != (name in new) or old[name] != new[name]
    ]


def is_among(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a setting's dotted name matches one of these patterns, which may contain
    stars."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def files_of(experiment: Experiment) -> Dict[str, Dict[str, List[str]]]:
    """Return the files that a run reads, by split and task, and the agent's files."""
    tasks = experiment.tasks.items()
    of_splits = {
        split: {f"tasks.{name}": task.files(split) for name, task in tasks if split in task.splits}
        for split in SPLITS
    }
    return {**of_splits, "agent": {"agent": list(experiment.agent.own_files)}}


def fingerprints(experiment: Experiment) -> Prints:
    """Return the size and checksum of each file. A file that is named several times is read
    once."""
    files = files_of(experiment)
    every = {path for sections in files.values() for paths in sections.values() for path in paths}
    known = {path: fingerprint(path) for path in every}
    return {
        part: {name: [known[path] for path in paths] for name, paths in sections.items()}
        for part, sections in files.items()
    }


def check_data(experiment: Experiment, before: Prints, now: Prints, checkpoint: Any) -> List[str]:
    """Check that training data, dev data and the agent's files are the same as in the run. Dev data
    may be added if there was none.

    before (Prints): Result of ``fingerprints`` when the run was saved.
    now (Prints): Result of ``fingerprints`` now.
    checkpoint (Path): The checkpoint from which the run resumes, for the message.
    RETURNS (List[str]): Test files that have changed.
    RAISES (DataError): If another file has changed or no longer exists.
    """
    others: List[str] = []
    for split, sections in files_of(experiment).items():
        if split == "dev" and not before[split]:
            continue
        for name in dict.fromkeys([*before[split], *now[split]]):
            old, new = before[split].get(name, []), now[split].get(name, [])
            paths = sections.get(name, [])
            if split not in FIXED:
                others += [path for path, *pair in zip(paths, old, new) if pair[0] != pair[1]]
                continue
            if len(new) != len(old):
                text = f"has {len(new)} {split} files; {checkpoint} was made with {len(old)}"
                raise DataError(f"[{name}]", f"{text}{FIXED[split]}: {TO_RESUME}")
            for path, there, here in zip(paths, old, new):
                if there != here:
                    check_readable(path, or_folder=True)
                    sizes = f" ({there[0]:,} bytes then, {here[0]:,} now)"
                    sizes = sizes if there[0] != here[0] else ""
                    text = f"has changed since {checkpoint} was made"
                    raise DataError(path, f"{text}{sizes}{FIXED[split]}: {TO_RESUME}")
    return others


def check_ops(experiment: Experiment, before: str, checkpoint: Any) -> None:
    """Check that a run on the CPU resumes with the ops that it began with.

    before (str): Name of the run's ops.
    checkpoint (Path): The checkpoint from which the run resumes, for the message.
    RAISES (ConfigError): If the ops differ.
    """
    now, setting = experiment.ops_name, experiment.checked.interpolated["system"]["ops"]
    if now != before and "cupy" not in (now, before):
        found = f'[system] ops = "{setting}"' + f' chooses "{now}" here' * (setting == "auto")
        hint = f'set ops = "{before}" to resume, or start another run with another --output'
        text = f'{found}, but {checkpoint} was made with "{before}"'
        raise experiment.checked.error(text, hint, "system", "ops")


def check_config(
    experiment: Experiment, before: Mapping[str, Any], checkpoint: Any
) -> List[Change]:
    """Check that a run can resume with a config.

    experiment (Experiment): Built from the current config.
    before (Mapping[str, Any]): The run's complete config, with variables filled in.
    checkpoint (Path): The checkpoint from which the run resumes, for messages.
    RETURNS (List[Change]): Harmless changes.
    RAISES (ConfigError): If there are other changes; lists all of them.
    """
    checked, files = experiment.checked, files_of(experiment)
    runner = [f"runner.{name}" for name in experiment.runner.harmless]
    old, new = flat(before), flat(checked.interpolated)
    # A setting that the package has gained since the run began had its default value.
    for name, value in leaves(default_data()):
        if name.count(".") == 1 and name in new:
            old.setdefault(name, value)
    changes = changes_of(old, new)
    # Files may have moved: check_data compares their contents.
    paths = []
    for part, sections in files.items():
        for section, found in sections.items():
            paths += [f"{section}.{part}"] if found and part in SPLITS else []
            inner = (name for name in new if name.startswith(f"{section}."))
            paths += [name for name in inner if new[name] in found and old.get(name)]
    problems = []
    for change in changes:
        allowed = (*HARMLESS, *runner, *paths, *(ADDABLE if change.old == MISSING else ()))
        if not is_among(change.name, allowed):
            section, _, key = change.name.rpartition(".")
            text = f"[{section}] {key} = {change.new!r}, but {checkpoint} has {change.old!r}"
            hint = "give the old value to resume, or start another run with another --output"
            problems.append(Problem(checked.where(*change.name.split(".")), text, hint))
    if problems:
        raise ConfigError(problems, checked.name)
    return changes


def check_limits(
    experiment: Experiment, changes: Sequence[Change], loop: Mapping[str, Any], checkpoint: Any
) -> None:
    """Check that no limit was lowered below the training that the run has already had.

    changes (Sequence[Change]): Result of ``check_config``.
    loop (Mapping[str, Any]): State of the training loop.
    checkpoint (Path): The checkpoint from which the run resumes, for the message.
    RAISES (ConfigError): If a limit was lowered too far.
    """
    had = {"steps": loop["position"]["step"], "epochs": loop["position"]["epoch"]}
    had["seconds"] = loop["seconds"]
    for change in changes:
        unit = change.name.removeprefix("training.max_")
        if unit in had and 0 < change.new < had[unit]:
            text = f"[training] max_{unit} = {change.new:g}, but {checkpoint} already has"
            hint = "give a higher limit to resume, or start another run with another --output"
            text += f" {had[unit]:g} {unit}"
            raise experiment.checked.error(text, hint, "training", f"max_{unit}")
