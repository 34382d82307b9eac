"""Build the stores of a config, which hold its preprocessed data, before any training."""

import sys
from contextlib import closing
from functools import partial
from typing import List, Optional, TextIO

from ..config import CodeLike, ConfigLike, Overrides
from ..training.experiment import Experiment
from ..training.stores import Built


def build(
    config: ConfigLike,
    *,
    overrides: Overrides = None,
    code: CodeLike = None,
    stderr: Optional[TextIO] = None,
) -> List[Built]:
    """Build the parts of ``[loader] store`` that are missing, out of date or damaged. If a build is
    interrupted, the next call resumes it.

    config (ConfigLike): Path of a config, its text, a Config, or a dict of its sections.
    overrides (Optional[Mapping[str, Any]]): "section.key" to value.
    code (CodeLike): Python file or files to import first; they may register functions.
    stderr (Optional[TextIO]): Stream for progress; sys.stderr if None.
    RETURNS (List[Built]): The examples and the tokens of each split of each task.
    RAISES (DialogError): If the config names no store, if data cannot be read, or if the store
        cannot be written.
    """
    experiment, stderr = Experiment.from_config(config, overrides, code), stderr or sys.stderr
    experiment.readers.note = partial(print, file=stderr, flush=True)
    with experiment.working(), closing(experiment.readers):
        if experiment.stores is None:
            text = "[loader] 'store' is null: there is nothing to build"
            hint = "give a folder, with --loader.store FOLDER"
            raise experiment.checked.error(text, hint, "loader", "store")
        experiment.check_data()
        built = experiment.use_examples(stderr, "all")
        if experiment.agent.learns:
            experiment.initialize(experiment.training_split(), stderr)
            built += experiment.use_tokens(stderr, "all")
        stderr.writelines(f"{bad.summary()}\n" for bad in experiment.bad_data().values())
        return built
