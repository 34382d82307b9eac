"""A small task and config that tests of several commands train with."""

CONFIG = """[tasks.coffee]
@teachers = "thincdialog.CoffeeOrder.v1"
n_train = 60

[tasks.coffee.mutators.*.flatten]
@mutators = "thincdialog.Flatten.v1"

[tokenizer]
@tokenizers = "thincdialog.Words.v1"

[agent]
@agents = "thincdialog.Ranker.v1"

[agent.model]
@models = "thincdialog.BiEncoder.v1"

[agent.model.encoder]
@models = "thincdialog.BagEncoder.v1"
width = 16

[world.batcher]
size = 16
"""
