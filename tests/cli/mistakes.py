"""A small config, and what people get wrong in it: for test_mistakes.py.

The table holds every mistake that spaCy lets pass or answers with a traceback, save two
that are none: ``--training.max-steps`` and a setting that is left out are taken, see
test_mistakes.py. It holds the traps of confection, catalogue and Thinc, save those that
cannot happen here:

- Keys are checked by a walk of the whole config before anything is built, never by
  confection: no schema takes away or refuses what it does not know, no block is checked
  before it is built, no switch leaves checks out.
- Overrides change the text that was read, in one place: there is no config that stays
  without them.
- ``${block}`` is a copy, and each copy builds an object of its own: that is what it says.
- Configs are written by a writer of their own: sections in order, comments kept.
- Entry points, one that is broken or stands in the way of ``--code``, need an installed
  package: tests/test_registry.py.
- Tuples and sets, for which JSON has lists, are made of these: only what does not fit is a
  mistake.
"""

CONFIG = """[paths]
train = "talk.jsonl"
folder = null

[tasks.talk]
@teachers = "thincdialog.Conversations.v1"
train = ${paths.train}

[tokenizer]
@tokenizers = "thincdialog.Words.v1"
min_freq = 1

[agent]
@agents = "thincdialog.Ranker.v1"

[agent.model]
@models = "thincdialog.BiEncoder.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = 16

[world.batcher]
size = 16

[training]
max_steps = 2

[training.optimizer]
@optimizers = "Adam.v1"
learn_rate = 0.01
"""
TALK = '{"turns": [{"speaker": "a", "text": "hi"}, {"speaker": "b", "text": "hello"}]}\n'
CODE = '''
from typing import Any, Iterable
from thinc.api import Model
from thincdialog.api import registry

@registry.layers("test_mistakes.Layer.v1")
def build_layer(parts: Iterable[Any] = (), inner: Model = None, half: float = 0.5) -> Model:
    """Holds layers.

    half (float): Half of something.
    """
    return Model("layer", lambda model, X, is_train: (X, lambda dX: dX))
'''
# Functions of the user's that annotate in ways that confection does not get along with.
ODD = '''
from __future__ import annotations

from typing import TYPE_CHECKING, Any, List, Tuple

from confection.validation import PositiveInt
from thinc.api import Model
from thincdialog.api import registry

if TYPE_CHECKING:
    from nowhere import Nothing

def nothing(*given, **named) -> Model:
    return Model("layer", lambda model, X, is_train: (X, lambda dX: dX))

@registry.layers("test_mistakes.Tuple.v1")
def with_tuple(sizes: Tuple[int, int]) -> Model:
    """Holds nothing.

    sizes (Tuple[int, int]): Of its two sides.
    """
    return nothing()

@registry.layers("test_mistakes.Keywords.v1")
def with_keywords(depth: int = 1, **options: Any) -> Model:
    return nothing()

@registry.layers("test_mistakes.Positive.v1")
def with_confections_type(size: PositiveInt) -> Model:
    return nothing()

@registry.layers("test_mistakes.Unknown.v1")
def with_unknown_type(size: int, other: Nothing = None) -> Model:
    return nothing()
'''
ENCODER = '@models = "thincdialog.BagEncoder.v1"\nwidth = 16'
# A file of the user's that takes a name twice.
TWICE = CODE + CODE.replace("build_layer", "build_other")

# What is changed in the config (old, new), further arguments, the exit code, where the
# message points ("=" a line of the config that begins so), and words of it and its hint.
MISTAKES = {
    # What other programs let pass or answer with a traceback.
    "no dot": (
        "", "", "--max_steps 10", 2, "", ["--max_steps - did you mean --training.max_steps?"],
    ),
    "unknown override": (
        "", "", "--training.max_stepz 10", 1, "--training.max_stepz",
        ["[training] has no setting 'max_stepz'", "did you mean 'max_steps'?"],
    ),
    "unknown section in an override": (
        "", "", "--trainin.max_steps 3", 1, "--trainin.max_steps",
        ["no section [trainin]", "did you mean --training.max_steps?"],
    ),
    "word for a number in an override": (
        "", "", "--training.max_steps abc", 1, "--training.max_steps",
        ["'max_steps' should be an integer, 0 or more, got \"abc\"", "Stop after so many steps"],
    ),
    "unknown function": (
        "BagEncoder.v1", "BagEncodr.v1", "", 1, '=@models = "thincdialog.BagEncodr',
        ["'thincdialog.BagEncodr.v1' is not in 'models'", "did you mean 'thincdialog.BagEncoder"],
    ),
    "unknown argument": (
        "min_freq = 1", "min_frek = 1", "", 1, "=min_frek",
        ["Words.v1 has no argument 'min_frek'", "did you mean 'min_freq'?"],
    ),
    "missing and unexpected argument": (
        "learn_rate = 0.01", "learn_rat = 0.01", "", 1, "=learn_rat",
        ["Adam.v1 has no argument 'learn_rat'", "did you mean 'learn_rate'?"],
    ),
    "wrong type of an argument": (
        "width = 16", 'width = "one"', "", 1, "=width",
        ["[agent.model.encoder] 'width' of thincdialog.BagEncoder.v1 should be an integer, got",
         "width (int): "],
    ),
    "undefined variable": (
        "${paths.train}", "${paths.trainn}", "", 1, "=train = ${",
        ["refers to ${paths.trainn}, which is not defined", "did you mean ${paths.train}?"],
    ),
    "repeated section": (
        "[training]", "[tokenizer]\nmin_freq = 1\n\n[training]", "", 1, "",
        ["my.cfg:26  section [tokenizer] is repeated", "it stands at line 9 already: merge"],
    ),
    "no training data": (
        'train = "talk.jsonl"', "train = null", "", 1, "[tasks.talk]",
        ["has no train data (it has: none)", "Give it with --paths.train FILE."],
    ),
    # The traps of the library that reads configs.
    "unknown setting": (
        "max_steps = 2", "max_stepz = 2", "", 1, "=max_stepz",
        ["[training] has no setting 'max_stepz'", "did you mean 'max_steps'?"],
    ),
    "unknown section": (
        "[training]", "[trainning]", "", 1, "=[trainning]",
        ["there is no section [trainning]", "did you mean 'training'?"],
    ),
    "a number as a string": (
        "max_steps = 2", 'max_steps = "2"', "", 1, "=max_steps",
        ["should be an integer", 'got "2" - write it without quotes'],
    ),
    "a fraction as a string": (
        "learn_rate = 0.01", 'learn_rate = "0.01"', "", 1, "=learn_rate",
        ["'learn_rate' of Adam.v1 should be", 'got "0.01" - write 0.01|without quotes'],
    ),
    "out of range": (
        "size = 16", "size = -1", "", 1, "=size",
        ["'size' of thincdialog.Fixed.v1 is -1", "give whole numbers of at least 1"],
    ),
    "out of the range of a function of Thinc's": (
        "learn_rate = 0.01", "learn_rate = -1", "", 1, "=learn_rate",
        ["'learn_rate' of Adam.v1 should be 0 or more, got -1 - see thinc/optimizers.py:"],
    ),
    "no width": (
        "width = 16", "width = 0", "", 1, "=width",
        ["'width' of thincdialog.BagEncoder.v1 should be 1 or more, got 0 - width (int): "],
    ),
    "out of a section's range": (
        "max_steps = 2", "accumulate_gradient = 0", "", 1, "=accumulate_gradient",
        ["[training] 'accumulate_gradient' should be an integer, 1 or more, got 0"],
    ),
    "fewer workers than none": (
        "", "", "--hogwild.workers -1", 1, "--hogwild.workers",
        ["[hogwild] 'workers' should be an integer, 0 to 1,024, got -1 - How many, each"],
    ),
    "more workers than anybody has cores": (
        "", "", "--hogwild.workers 1025", 1, "--hogwild.workers",
        ["[hogwild] 'workers' should be an integer, 0 to 1,024, got 1025 - How many, each"],
    ),
    "workers in words": (
        "[training]", '[hogwild]\nworkers = "two"\n\n[training]', "", 1, "=workers",
        ["[hogwild] 'workers' should be an integer, 0 to 1,024, got \"two\""],
    ),
    "another kind of workers": (
        "[training]", '[hogwild]\nexecutor = "fork"\n\n[training]', "", 1, "=executor",
        ["[hogwild] 'executor' should be \"thread\" or \"process\", got \"fork\""],
    ),
    "another kind of block": (
        '@models = "thincdialog.BagEncoder.v1"\nwidth = 16', '@optimizers = "Adam.v1"\n'
        "learn_rate = 0.1", "", 1, "=[agent.model.encoder]|=@optimizers",
        ["should be a block that builds a Model, got a Optimizer", "encoder (Model): "],
    ),
    "deep argument": (
        "width = 16", "width = 16\nwindow = 3", "", 1, "=window",
        ["[agent.model.encoder] thincdialog.BagEncoder.v1 has no argument 'window'"],
    ),
    "unknown registry": (
        "@tokenizers", "@tokenizer", "", 1, "=@tokenizer ",
        ["there is no registry '@tokenizer'", "did you mean '@tokenizers'?"],
    ),
    "repeated key": (
        "max_steps = 2", "max_steps = 2\nmax_steps = 3", "", 1, "=max_steps = 3",
        ["[training] 'max_steps' is repeated", "already: keep one"],
    ),
    "block in a list": (
        '[agent.model]\n@models = "thincdialog.BiEncoder.v1"\n',
        '[agent.model]\n@layers = "test_mistakes.Layer.v1"\nparts = [{"@layers": "Linear.v2"}]\n'
        "half = 1.0\n\n[agent.model.inner]\n" '@models = "thincdialog.BiEncoder.v1"\n',
        "--code code.py", 1, None, ["'Linear.v2' is not in 'layers'", "did you mean 'Linear.v1'?"],
    ),
    "comment behind a value": (
        "max_steps = 2", "max_steps = 2 # few", "", 1, "=max_steps",
        ["'max_steps' is 2 # few", "a comment needs a line of its own, above the key"],
    ),
    "number without a digit before the point": (
        "learn_rate = 0.01", "learn_rate = .01", "", 1, "=learn_rate",
        [".01, which is not a number in JSON", "write 0.01"],
    ),
    "number with underscores": (
        "max_steps = 2", "max_steps = 1_000", "", 1, "=max_steps",
        ["1_000, which is not a number in JSON", "write 1000"],
    ),
    "single quotes": (
        'train = "talk.jsonl"', "train = 'talk.jsonl'", "", 1, "=train = '",
        ["'talk.jsonl'", "strings are written with double quotes"],
    ),
    "word for true": (
        "min_freq = 1", "lower = yes", "", 1, "=lower",
        ["'lower' of thincdialog.Words.v1 should be true or false", "write true or false"],
    ),
    "not a number": (
        "learn_rate = 0.01", "learn_rate = NaN", "", 1, "=learn_rate",
        ["is nan", "write a finite number"],
    ),
    "infinite": (
        "max_steps = 2", "max_seconds = Infinity", "", 1, "=max_seconds",
        ["is inf", "write a finite number"],
    ),
    "lone dollar": (
        'train = "talk.jsonl"', 'train = "$HOME/talk.jsonl"', "", 1, "=train = \"$",
        ["holds a lone '$'", "write $$ for a dollar sign"],
    ),
    "null in a text": (
        "${paths.train}", '"${paths.folder}/talk.jsonl"', "", 1, '=train = "${',
        ["puts ${paths.folder} into a text, but that is null", "give 'paths.folder' a value"],
    ),
    "section in a text": (
        "${paths.train}", '"${paths}/talk.jsonl"', "", 1, '=train = "${',
        ["puts the whole section ${paths} into a text", "refer to a single value"],
    ),
    "variable of the environment": (
        "${paths.train}", '"${env.HOME}/talk.jsonl"', "", 1, '=train = "${',
        ["refers to ${env.HOME}, which is not defined", "define it in [paths]"],
    ),
    "list of another length than the tuple": (
        ENCODER, '@layers = "test_mistakes.Tuple.v1"\nsizes = [1, 2, 3]', "--code odd.py", 1,
        "=sizes", ["of test_mistakes.Tuple.v1 should be a list of 2 integers, got [1, 2, 3]",
                   "sizes (Tuple[int, int]): Of its two sides. (odd.py:16)"],
    ),
    "list of other things than the tuple's": (
        ENCODER, '@layers = "test_mistakes.Tuple.v1"\nsizes = [1, "2"]', "--code odd.py", 1,
        "=sizes", ["should be a list of 2 integers, got [1, \"2\"]", "odd.py:16"],
    ),
    "misspelt argument beside keywords": (
        ENCODER, '@layers = "test_mistakes.Keywords.v1"\ndeph = 2', "--code odd.py", 1,
        "=deph", ["test_mistakes.Keywords.v1 has no argument 'deph'", "did you mean 'depth'?"],
    ),
    "argument for keywords": (
        ENCODER, '@layers = "test_mistakes.Keywords.v1"\nheads = 2', "--code odd.py", 1,
        "=heads", ["has no argument 'heads'", "name it beside **options (odd.py:24): a config"],
    ),
    "annotated with a type of confection's": (
        ENCODER, '@layers = "test_mistakes.Positive.v1"\nsize = 3', "--code odd.py", 1,
        "=size = 3", ["'size' of test_mistakes.Positive.v1 should be confection's PositiveInt",
                      "no value is one: annotate int, float or bool there (odd.py:28)"],
    ),
    "wrong type beside one that is not imported": (
        ENCODER, '@layers = "test_mistakes.Unknown.v1"\nsize = "zzz"', "--code odd.py", 1,
        "=size = \"", ["'size' of test_mistakes.Unknown.v1 should be an integer, got \"zzz\""],
    ),
    "registered twice": (
        "", "", "--code twice.py", 1, "'test_mistakes.Layer.v2' is registered twice in 'layers'",
        ["twice.py:6", "twice.py:18", "Rename one of them"],
    ),
    "both a value and a section": (
        "[world.batcher]\nsize = 16", "[training.max_steps]\nx = 1", "", 1, "=max_steps",
        ["'max_steps' is both a value and a section", "keep one"],
    ),
    "no function": (
        '@tokenizers = "thincdialog.Words.v1"\n', "", "", 1, "=[tokenizer]",
        ["[tokenizer] does not say what builds it", 'add: @tokenizers = "..."'],
    ),
    # The command line and files.
    "no config": ("", "", "--code nothing.py", 1, "nothing.py", ["no such Python file", "check"]),
    "no data": (
        "", "", "--paths.train tlak.jsonl", 1, "tlak.jsonl",
        ["file not found", "did you mean 'talk.jsonl'?"],
    ),
    "bad data": (
        "", "", "--paths.train bad.jsonl", 1, "bad.jsonl:2",
        ["'text' of turn 1 is a number, not a string"],
    ),
    "unused path": (
        "", "", "--paths.trian talk.jsonl", 1, "--paths.trian",
        ["uses '${paths.trian}' nowhere", "did you mean 'train'?"],
    ),
    "unknown option": ("", "", "--forse", 2, "", ["--forse - did you mean --force?"]),
}  # fmt: skip
