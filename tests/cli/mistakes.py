"""A small config, and common mistakes in it, for test_mistakes.py.

The tables contain every mistake that spaCy accepts or answers with a traceback, except two that
are no mistakes here (``--training.max-steps``, and a missing setting), and the traps of
confection, catalogue and Thinc. Entry points that are broken or in conflict with ``--code`` need
an installed package: tests/test_registry.py.
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
OTHER = TALK.replace("hello", "howdy")
# Custom functions, some of which are annotated in ways that confection does not support.
CODE = '''
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Iterable, Tuple

from confection.validation import PositiveInt
from thinc.api import Model
from thincdialog.api import registry

if TYPE_CHECKING:
    from nowhere import Nothing

def nothing(*given, **named) -> Model:
    return Model("layer", lambda model, X, is_train: (X, lambda dX: dX))

@registry.layers("test_mistakes.Layer.v1")
def with_layers(parts: Iterable[Any]) -> Model:
    return nothing()

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
# A custom file that registers a name twice.
TWICE = """
from thincdialog.api import registry

@registry.layers("test_mistakes.Twice.v1")
def build_layer():
    pass

@registry.layers("test_mistakes.Twice.v1")
def build_other():
    pass
"""
# Agents as ParlAI defines them.
PARLAIS = """from thincdialog.api import Agent, registry


@registry.agents("test_mistakes.Old.v1")
class Old(Agent):
    def __init__(self, opt, shared=None):
        super().__init__(opt, shared)


@registry.agents("test_mistakes.Built.v1")
def build():
    return Old({})
"""
WORDS = '@tokenizers = "thincdialog.Words.v1"\nmin_freq = 1'
ENCODER = '@models = "thincdialog.BagEncoder.v1"\nwidth = 16'

# The change of the config (old, new), the line that the message names ("=": the line that begins
# with this; "": the last line of the change), and words of the message and its hint ("|": one of
# them).
MISTAKES = {
    "unknown function": ("BagEncoder.v1", "BagEncodr.v1", "",
        ["'thincdialog.BagEncodr.v1' is not in 'models'", "did you mean 'thincdialog.BagEncoder"]),
    "unknown argument": ("min_freq = 1", "min_frek = 1", "",
        ["Words.v1 has no argument 'min_frek'", "did you mean 'min_freq'?"]),
    "missing and unexpected argument": ("learn_rate = 0.01", "learn_rat = 0.01", "",
        ["Adam.v1 has no argument 'learn_rat'", "did you mean 'learn_rate'?"]),
    "wrong type of an argument": ("width = 16", 'width = "one"', "",
        ["[agent.model.encoder] 'width' of thincdialog.BagEncoder.v1 should be an integer, got",
         "width (int): "]),
    "undefined variable": ("${paths.train}", "${paths.trainn}", "",
        ["refers to ${paths.trainn}, which is not defined", "did you mean ${paths.train}?"]),
    "repeated section": ("[training]", "[tokenizer]\nmin_freq = 1\n\n[training]", "my.cfg:26",
        ["section [tokenizer] is repeated", "the first one is at my.cfg:9: merge"]),
    "no training data": ('train = "talk.jsonl"', "train = null", "[tasks.talk]",
        ["has no train data (it has: none)", "Give it with --paths.train FILE."]),
    "unknown setting": ("max_steps = 2", "max_stepz = 2", "",
        ["[training] has no setting 'max_stepz'", "did you mean 'max_steps'?"]),
    "unknown section": ("[training]", "[trainning]", "",
        ["there is no section [trainning]", "did you mean 'training'?"]),
    "a number as a string": ("max_steps = 2", 'max_steps = "2"', "",
        ["should be an integer", 'got "2" - write it without quotes']),
    "a fraction as a string": ("learn_rate = 0.01", 'learn_rate = "0.01"', "",
        ["'learn_rate' of Adam.v1 should be", 'got "0.01" - write 0.01|without quotes']),
    "out of range": ("size = 16", "size = -1", "",
        ["'size' of thincdialog.Fixed.v1 is -1", "give whole numbers of at least 1"]),
    "out of the range of a function of Thinc's": ("learn_rate = 0.01", "learn_rate = -1", "",
        ["'learn_rate' of Adam.v1 should be 0 or more, got -1 - see thinc/optimizers.py:"]),
    "no width": ("width = 16", "width = 0", "",
        ["'width' of thincdialog.BagEncoder.v1 should be 1 or more, got 0 - width (int): "]),
    "out of a section's range": ("max_steps = 2", "accumulate_gradient = 0", "",
        ["[training] 'accumulate_gradient' should be an integer, 1 or more, got 0"]),
    "workers in words": ("[training]",
        '[runner]\n@runners = "thincdialog.Hogwild.v1"\nworkers = "two"\n\n[training]', "=workers",
        ["[runner] 'workers' of thincdialog.Hogwild.v1 should be an integer, got \"two\""]),
    "a section of before": ("[training]", "[hogwild]\nworkers = 2\n\n[training]", "=[hogwild]",
        ["there is no section [hogwild]", "[runner]"]),
    "a section of another name": ("[training]", "[ray]\nnum_workers = 2\n\n[training]", "=[ray]",
        ["there is no section [ray]", "go into [runner]", '@runners = "thincdialog.Ray.v1"']),
    "another kind of block": ('@models = "thincdialog.BagEncoder.v1"\nwidth = 16',
        '@optimizers = "Adam.v1"\nlearn_rate = 0.1', "=[agent.model.encoder]|=@optimizers",
        ["should be a block that builds a Model, got a Optimizer", "encoder (Model): "]),
    "deep argument": ("width = 16", "width = 16\nwindow = 3", "",
        ["[agent.model.encoder] thincdialog.BagEncoder.v1 has no argument 'window'"]),
    "unknown registry": ("@tokenizers", "@tokenizer", "",
        ["there is no registry '@tokenizer'", "did you mean '@tokenizers'?"]),
    "repeated key": ("max_steps = 2", "max_steps = 2\nmax_steps = 3", "",
        ["[training] 'max_steps' is repeated", "the first one is at my.cfg:", ": keep one"]),
    "block in a list": (ENCODER,
        '@layers = "test_mistakes.Layer.v1"\nparts = [{"@layers": "Linear.v2"}]', "",
        ["'Linear.v2' is not in 'layers'", "did you mean 'Linear.v1'?"]),
    "comment after a value": ("max_steps = 2", "max_steps = 2 # few", "",
        ["'max_steps' is 2 # few", "a comment needs a line of its own, above the key"]),
    "number without a digit before the point": ("learn_rate = 0.01", "learn_rate = .01", "",
        [".01, which is not a number in JSON", "write 0.01"]),
    "number with underscores": ("max_steps = 2", "max_steps = 1_000", "",
        ["1_000, which is not a number in JSON", "write 1000"]),
    "single quotes": ('train = "talk.jsonl"', "train = 'talk.jsonl'", "",
        ["'talk.jsonl'", "strings are written with double quotes"]),
    "word for true": ("min_freq = 1", "lower = yes", "",
        ["'lower' of thincdialog.Words.v1 should be true or false", "write true or false"]),
    "not a number": ("learn_rate = 0.01", "learn_rate = NaN", "",
        ["is nan", "write a finite number"]),
    "infinite": ("max_steps = 2", "max_seconds = Infinity", "",
        ["is inf", "write a finite number"]),
    "lone dollar": ('train = "talk.jsonl"', 'train = "$HOME/talk.jsonl"', "",
        ["holds a lone '$'", "write $$ for a dollar sign"]),
    "null in a text": ("${paths.train}", '"${paths.folder}/talk.jsonl"', "",
        ["puts ${paths.folder} into a text, but that is null", "give 'paths.folder' a value"]),
    "section in a text": ("${paths.train}", '"${paths}/talk.jsonl"', "",
        ["puts the whole section ${paths} into a text", "refer to a single value"]),
    "variable of the environment": ("${paths.train}", '"${env.HOME}/talk.jsonl"', "",
        ["refers to ${env.HOME}, which is not defined", "define it in [paths]"]),
    "list of another length than the tuple": (ENCODER,
        '@layers = "test_mistakes.Tuple.v1"\nsizes = [1, 2, 3]', "",
        ["of test_mistakes.Tuple.v1 should be a list of 2 integers, got [1, 2, 3]",
         "sizes (Tuple[int, int]): Of its two sides. (code.py:20)"]),
    "list of other things than the tuple's": (ENCODER,
        '@layers = "test_mistakes.Tuple.v1"\nsizes = [1, "2"]', "",
        ["should be a list of 2 integers, got [1, \"2\"]", "code.py:20"]),
    "misspelt argument with keywords": (ENCODER,
        '@layers = "test_mistakes.Keywords.v1"\ndeph = 2', "",
        ["test_mistakes.Keywords.v1 has no argument 'deph'", "did you mean 'depth'?"]),
    "argument for keywords": (ENCODER, '@layers = "test_mistakes.Keywords.v1"\nheads = 2', "",
        ["has no argument 'heads'", "a config cannot fill **options (code.py:28): make it"]),
    "annotated with a type of confection's": (ENCODER,
        '@layers = "test_mistakes.Positive.v1"\nsize = 3', "",
        ["'size' of test_mistakes.Positive.v1 should be confection's PositiveInt",
         "no value of a config has this type: annotate int, float or bool (code.py:32)"]),
    "wrong type next to one that is not imported": (ENCODER,
        '@layers = "test_mistakes.Unknown.v1"\nsize = "zzz"', "",
        ["'size' of test_mistakes.Unknown.v1 should be an integer, got \"zzz\""]),
    "both a value and a section": ("[world.batcher]\nsize = 16", "[training.max_steps]\nx = 1",
        "=max_steps", ["'max_steps' is both a value and a section", "keep one"]),
    "no function": ('@tokenizers = "thincdialog.Words.v1"\n', "", "=[tokenizer]",
        ["[tokenizer] does not say what builds it", 'add: @tokenizers = "..."']),
    "function of another registry": (ENCODER, '@layers = "thincdialog.BagEncoder.v1"\nwidth = 16',
        "=@layers", ["[agent.model.encoder] 'thincdialog.BagEncoder.v1' is not in 'layers'"]),
    "what a function refuses": (WORDS, '@tokenizers = "thincdialog.HashNgrams.v1"\nn_rows = -100',
        "=[tokenizer]|=n_rows|=@tokenizers",
        ["[tokenizer] thincdialog.HashNgrams.v1: n_rows = -1"]),
    "setting before any section": ("[paths]", "x = 1\n[paths]", "=x = 1",
        ["'x' comes before the first [section]"]),
    "section that is not closed": ("[paths]", "[paths\n", "=[paths",
        ["'[paths' is not a section name"]),
}  # fmt: skip

# Options, and the text of the message about them, which begins with the first option.
OVERRIDES = {
    "--ray.num_workers 2": ["--ray.num_workers", "no section [ray]", "go into [runner]"],
    "--training.max_stepz 10": [
        "--training.max_stepz  [training] has no setting 'max_stepz'", "did you mean 'max_steps'?",
    ],
    "--trainin.max_steps 3": [
        "--trainin.max_steps", "no section [trainin]", "did you mean --training.max_steps?",
    ],
    "--training.max_steps abc": [
        "--training.max_steps", "'max_steps' should be an integer, 0 or more, got \"abc\"",
        "Maximum number of optimizer steps",
    ],
    "--runner.@runners thincdialog.Hogwild.v1 --runner.workers 1025": [
        "--runner.workers", "'workers' of thincdialog.Hogwild.v1 is 1025", "give 1 to 1,024",
    ],
    "--agent.@agents thincdialog.Rancer.v1": ["--agent.@agents", "mean 'thincdialog.Ranker.v1'?"],
    "--agent.model.encoder.widht 3": ["--agent.model.encoder.widht", "did you mean 'width'?"],
    "--tasks.talk.train ${paths.trian}": ["--tasks.talk.train", "did you mean ${paths.train}?"],
    "--code twice.py": [
        "'test_mistakes.Twice.v1' is registered twice in 'layers'", "twice.py:4", "twice.py:8",
        "Rename one of them",
    ],
    "--code nothing.py": ["nothing.py", "no such Python file", "check"],
    "--paths.train tlak.jsonl": [
        "tlak.jsonl", "file not found in /", ", where the command runs",
        "did you mean 'talk.jsonl'?",
    ],
    "--paths.train sub/none.jsonl": ["sub/none.jsonl", "not found: the folder /", "/sub cannot"],
    "--paths.train ~none/talk.jsonl": ["~none/talk.jsonl", "only a shell expands ~: write the"],
    "--code parlais.py --agent.@agents test_mistakes.Old.v1": [
        "my.cfg:", "'opt' of test_mistakes.Old.v1 is missing",
        "ParlAI's agents take (opt, shared=None)", "__init__(self, size: int = 3)", "parlais.py",
    ],
    "--code parlais.py --agent.@agents test_mistakes.Built.v1": [
        "my.cfg:", "ParlAI's agents take (opt, shared=None)", "clone() makes the copies",
        "parlais.py:7",
    ],
    "--paths.train bad.jsonl": ["bad.jsonl:2", "'text' of turn 1 is a number, not a string"],
    "--paths.trian talk.jsonl": ["--paths.trian", "refers to '${paths.trian}'", "'train'?"],
}  # fmt: skip
