"""The model card: ``README.md`` in the folder of a saved model.

The card depends only on the config, the data and the seed, so it has no times and no folder names.
"""

import inspect
import json
import math
import platform
import re
import shlex
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import Any, Iterator, List, Mapping, Optional, Sequence

from thinc.api import Config

from .. import __version__
from ..agents.repeats import kept_setting
from ..contract import CODE_PREFIX
from ..evaluation.evaluate import Evaluation
from ..evaluation.results import COUNT, Result, is_of_words
from ..files.json_file import read_json
from ..files.plain_file import not_plain
from ..files.saved_model import BEST, LAST
from ..files.whole_file import whole_file, writing
from ..loggers.values import leaves
from ..messages import SPLITS
from ..metrics.usual import is_about_reading
from ..registry import registry
from ..training.trained_model import ANSWERING

CARD = "README.md"
_installed = lru_cache(metadata.version)
# Settings to list if the config has them.
SETTINGS = (
    "system.seed", "training.max_epochs", "training.max_steps", "training.min_steps",
    "training.max_seconds", "training.score", "training.patience",
    "training.optimizer.@optimizers", "training.optimizer.learn_rate",
    "training.optimizer.use_averages", "training.accumulate_gradient",
    "world.batcher.@batchers", "world.batcher.size", "evaluation.max_examples",
    "evaluation.n_candidates",
)  # fmt: skip


def write_card(folder: Path, result: Optional[Result] = None) -> None:
    """Write the card of a saved model, from the files in its folder.

    folder (Path): Folder of the model.
    result (Optional[Result]): Result of the training with this model's scores, once training is
        over.
    RAISES (OutputError): If the card cannot be written; an old card is then unchanged.
    """
    text = card(folder, result)
    with writing(folder / CARD):
        if not_plain(folder / CARD):  # A link or a pipe, which must not be written through.
            (folder / CARD).unlink()
    _write(folder / CARD, text)


def write_intervals(folder: Path, found: Evaluation) -> bool:
    """Write the intervals of an evaluation into the card of the model, before the section about the
    data, in place of those of an earlier evaluation of the split.

    folder (Path): Folder of the model.
    found (Evaluation): The evaluation, on the data of the model's config.
    RETURNS (bool): Whether the folder has a card with that section.
    RAISES (OutputError): If the card cannot be written; it is then unchanged.
    """
    path, heading = folder / CARD, f"\n### {found.split}: 95 % intervals\n"
    if not_plain(path) or not path.is_file():
        return False
    text = path.read_text(encoding="utf8", errors="backslashreplace")
    text = re.sub(f"{re.escape(heading)}.*?(?=\n##)", "", text, flags=re.DOTALL)
    before, data, after = text.partition("\n## Data\n")
    rows = [["metric", "this model", "95 % interval"]]
    for name in _shown_metrics(found.scores):
        if ends := found.intervals.get(name):
            rows.append([f"`{name}`", _number(found.scores[name]), " to ".join(map(_number, ends))])
    times = f"{found.n_drawn:,} {found.drawn}, drawn {found.n_resamples:,} times"
    lines = [heading, *_table(rows), "", f"Percentile bootstrap over {times}.", ""]
    if data:
        _write(path, before + "\n".join(lines) + data + after)
    return bool(data)


def _write(path: Path, text: str) -> None:
    with writing(path), whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf8", errors="backslashreplace")


def card(folder: Path, result: Optional[Result] = None) -> str:
    """Return the text of the card in Markdown. Arguments are as for ``write_card``."""
    config = _parsed((folder / "config.cfg").read_text(encoding="utf8"))
    meta = read_json(folder / "meta.json")
    sections = {
        "Scores": _scores(meta, result),
        "Data": _data(config, result),
        "Model and training": _model(config, meta, folder, result),
        "How to use it": _use(folder.name, meta.get("code", []), _answers_with_code(config)),
        "Limits": _limits(config, meta, folder, result),
        "Versions": _versions(meta),
    }
    lines = _title(config, meta)
    for title, section in sections.items():
        lines += ["", f"## {title}", "", *section]
    return "\n".join(lines) + "\n"


@lru_cache(maxsize=1)
def _parsed(text: str) -> Mapping[str, Any]:
    """Parse a config, only once for all models that a run saves."""
    return Config().from_str(text)


def _title(config: Mapping[str, Any], meta: Mapping[str, Any]) -> List[str]:
    tasks = ", ".join(config.get("tasks", ())) or "A model"
    name = meta.get("agent", "")
    return [
        f"# {tasks}",
        "",
        f"A dialogue model: agent `{name}`, trained with thincdialog {_version(meta)}.",
        *_first_sentence(name),
    ]


def _first_sentence(name: str) -> List[str]:
    try:
        text = inspect.getdoc(registry.agents.get(name)) or ""
    except Exception:  # This process does not know the name: leave the sentence out.
        return []
    paragraph = " ".join(text.split("\n\n")[0].split())
    return [paragraph] if paragraph else []


# --- scores -----------------------------------------------------------------------------


def _scores(meta: Mapping[str, Any], result: Optional[Result]) -> Iterator[str]:
    if result is None or not result.scores:
        if not meta.get("dev"):
            yield "None were measured when it was saved."
            return
        yield f"On the dev data, with these weights (step {meta['step']:,})."
        yield ""
        yield from _table([["metric", "dev"], *_values({"": meta["dev"]}, "")])
        return
    yield f"With the weights of step {result.best_step:,}, the best by `{result.score_name}`."
    for split, report in result.scores.items():
        yield from ("", f"### {split}: {report[COUNT]:,.0f} examples", "")
        rows = _values(result.agents(split), result.score_name)
        yield from _table([["metric", "this model", *result.baselines], *rows])


def _values(agents: Mapping[str, Mapping[str, float]], first: str) -> Iterator[List[str]]:
    """Yield a row for each metric of the first agent: the value of each agent."""
    own, *_ = agents.values()
    for name in sorted(_shown_metrics(own), key=lambda name: name != first):
        yield [f"`{name}`", *(_number(scores.get(name)) for scores in agents.values())]


def _shown_metrics(scores: Mapping[str, float]) -> List[str]:
    """Return the names of the metrics that a card shows."""
    return [name for name in scores if not is_about_reading(name) and not is_of_words(name, scores)]


def _number(value: Any) -> str:
    return "" if value is None else f"{value:.4f}"


# --- data, model, settings ----------------------------------------------------------------


def _data(config: Mapping[str, Any], result: Optional[Result]) -> Iterator[str]:
    rows = [["task", "teacher", "split", "files", "examples"]]
    tasks = config.get("tasks", {})
    for task, settings in tasks.items():
        for split in SPLITS:
            n = _n_examples(task, split, len(tasks) > 1, result)
            if n and split != "train" and config.get("evaluation", {}).get("max_examples"):
                n += " evaluated"  # There may be more in the files.
            files = _file_names(settings.get(split))
            if files or n:
                rows.append([task, f"`{settings['@teachers']}`", split, files, n])
        if rows[-1][0] != task:
            rows.append([task, f"`{settings['@teachers']}`", "", "", ""])
    yield from _table(rows)
    steps = [f"`{name}`" for name in _registered(tasks, "@mutators")]
    if steps:
        yield from ("", f"Changed on reading by {', '.join(steps)}.")


def _n_examples(task: str, split: str, is_one_of_many: bool, result: Optional[Result]) -> str:
    if result is None:
        return ""
    if split == "train":
        n: Optional[float] = result.train_examples.get(task if is_one_of_many else "")
    else:
        n = result.scores.get(split, {}).get(f"{task}/{COUNT}" if is_one_of_many else COUNT)
    return "" if n is None else f"{n:,.0f}"


def _file_names(value: Any) -> str:
    """Return file names without folders, which differ from machine to machine."""
    names = value if isinstance(value, list) else [value]
    return ", ".join(f"`{Path(name).name}`" for name in names if isinstance(name, str))


def _model(
    config: Mapping[str, Any], meta: Mapping[str, Any], folder: Path, result: Optional[Result]
) -> Iterator[str]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != CARD]
    if (folder / "layout.json").is_file():
        slots = read_json(folder / "layout.json")["parameters"]
        n_parameters = sum(math.prod(slot["shape"]) for slot in slots)
        yield f"- {n_parameters:,} parameters (float32)"
    yield f"- {sum(path.stat().st_size for path in files) / 1e6:.1f} MB on disk"
    models = [f"`{name}`" for name in _registered(config.get("agent", {}), "@models")]
    if models:
        yield f"- model: {', '.join(models)}"
    for name in _registered(config.get("tokenizer", {}), "@tokenizers"):
        yield f"- tokenizer: `{name}`"
    beginning = config.get("training", {}).get("init_from")
    if beginning:
        yield f"- initialised from the saved model `{_model_name(beginning)}`"
    if "step" in meta:  # The step is missing if the agent was trained with a custom loop.
        seen = f"{meta.get('epoch', 0):.4g} epochs, {meta.get('examples', 0):,} examples"
        yield f"- {meta['step']:,} steps, {seen}"
    if result is not None:
        yield f"- training ended: {result.stopped_because}"
    yield from ("", "The whole config is [config.cfg](config.cfg). Its main settings:", "")
    known = dict(leaves(config))
    # A limit of 0 is no limit.
    shown = [name for name in SETTINGS if known.get(name) or name == "system.seed"]
    yield from _table([["setting", "value"], *([f"`{n}`", str(known.get(n))] for n in shown)])


def _model_name(folder: str) -> str:
    """Return the name of a saved model without its parent folders; for the model-best or model-last
    of a run, with the name of the run."""
    path = Path(folder)
    return f"{path.parent.name}/{path.name}" if path.name in (BEST, LAST) else path.name


def _registered(config: Any, kind: str) -> List[str]:
    """Return the distinct names of the registered functions of a kind, in order."""
    return list(dict.fromkeys(v for name, v in leaves(config) if name.split(".")[-1] == kind))


def _use(name: str, code: Sequence[str], answers_with_code: bool) -> List[str]:
    # While a model is written, its folder has a temporary name.
    model = name[1:].rpartition(".")[0] if name.startswith(".") else name
    files = ", ".join(f"`{file}`" for file in code)
    needs = f"It was trained with custom code: copy {files} to the folder named below. "
    if not answers_with_code:
        needs = f"Only its data was read with custom code: `evaluate` needs {files}. "
    words = [model, *(word for file in code for word in ("--code", file))]
    to_chat = words if answers_with_code else words[:1]
    given = f", code={json.dumps(list(code))}" if code and answers_with_code else ""
    return [
        f"{needs if code else ''}In the folder that contains this one:", "",
        "```",
        f"python -m thincdialog {shlex.join(['chat', *to_chat])}",
        f"python -m thincdialog {shlex.join(['evaluate', *words])}",
        "```", "",
        "```python",
        "import thincdialog", "",
        f'print(thincdialog.load("{model}"{given}).respond("Hello!"))',
        "```",
    ]  # fmt: skip


def _answers_with_code(config: Mapping[str, Any]) -> bool:
    """Return whether custom code registers a part of the agent, or a part's name is not known."""
    for key, name in leaves({section: config.get(section, {}) for section in ANSWERING}):
        kind = key.rpartition(".")[2]
        if kind.startswith("@"):
            try:
                made = getattr(registry, kind[1:]).get(name)
            except Exception:  # This process does not know the name.
                return True
            if made.__module__.startswith(CODE_PREFIX):
                return True
    return False


def _limits(
    config: Mapping[str, Any], meta: Mapping[str, Any], folder: Path, result: Optional[Result]
) -> Iterator[str]:
    yield "- The scores are valid only for data like the data that it was measured on."
    agent = config.get("agent", {})
    if agent.get("@agents") == "thincdialog.Ranker.v1":
        yield "- It chooses among given replies and does not write new ones."
        n = config.get("evaluation", {}).get("n_candidates")
        if n:
            sizes = [size for size in (result.choices if result else ()) if size]
            few, many = (min(sizes), max(sizes)) if sizes else (0, n)
            among = f"{few} to {many}" if 0 < few < many else f"{'' if few else 'up to '}{many}"
            yield f"- In evaluation it chose among {among} candidates; with more of them, scores"
            yield "  are lower."
    if agent.get("@agents") == "thincdialog.Classifier.v1":
        least, known = meta.get("threshold"), "- It knows the classes of its training data only"
        if least:
            yield f"{known}, and answers `{meta['reject_class']}`"
            yield f"  if the best one has a probability below {least:.4f}."
        else:
            yield f"{known}, and always answers with one."
    if "block_repeats" in agent:
        path = folder / "agent.json"
        state = read_json(path) if path.is_file() else {}
        if kept_setting(agent["block_repeats"], state):
            yield "- It avoids repeats: candidates that equal the message or an earlier turn rank"
            yield "  after all others, in a chat and in the scores above (`block_repeats`)."
        else:
            yield "- It may repeat the message or an earlier turn (`block_repeats`)."
    source = agent.get("eval_candidates")
    if source:
        yield f'- In evaluation its candidates were "{source}" (`eval_candidates`).'
    if agent.get("max_context"):
        yield f"- It reads the last {agent['max_context']} tokens of a conversation."
    yield "- Replies are not filtered: it may repeat anything in its training data."


def _versions(meta: Mapping[str, Any]) -> List[str]:
    found = {"thincdialog": _version(meta), "Python": meta.get("python", platform.python_version())}
    found.update({name: _installed(name) for name in ("thinc", "numpy")})
    return [", ".join(f"{name} {version}" for name, version in found.items())]


def _version(meta: Mapping[str, Any]) -> str:
    return str(meta.get("thincdialog", __version__))


def _table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    for number, row in enumerate(rows):
        yield f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |"
        if number == 0:
            yield f"|{'---|' * len(row)}"
