"""Training steps of the ranker: ours, and the same model in PyTorch (eager, CPU).

    python tests/benchmarks/bench_torch_ranker.py

The sizes are those of configs/ranker.cfg. Both learn, from the same ids: bags of
embeddings (one table for both sides; current turn and history side by side), for each
side a linear layer and a residual net, cosines times a learned factor, softmax over the
batch, the gradient's norm clipped. Printed: the median of the rounds' means, in turn.
"""

import argparse
import math
import time

import numpy as np
from measuring import cpu_seconds, in_turns, medians
from thinc.api import Adam, Ragged, fix_random_seed

from thincdialog.losses.ranking import RankingSoftmax
from thincdialog.models.bag_encoder import BagEncoder
from thincdialog.models.bi_encoder import BiEncoder
from thincdialog.models.parameters import FlatParameters
from thincdialog.models.vocabulary_size import set_vocabulary
from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.optimizers.lazy_adam import LazyAdam

N_BATCHES, LEARN_RATE, MAX_NORM = 8, 1e-3, 1.0
OPTIONS = {
    "n-ids": (65544, "rows of the embedding table"),
    "width": (256, "width of all vectors"),
    "batch": (512, "examples in a batch"),
    "depth": (0, "residual nets of each side"),
    "dropout": (0.0, "rate of dropout"),
    "rounds": (7, "rounds, each with every rival"),
    "steps": (8, "steps of one rival in a round"),
    "threads": (2, "threads of PyTorch"),
}


def make_batches(n_ids, batch):
    """Ids by Zipf's law; contexts of 25 to 75 ids, half of them history, and replies of
    6 to 18. RETURNS for each side: ids, and the sizes of its bags, shape (batch, 2)."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, n_ids + 1)
    share /= share.sum()

    def side(mean, has_history):
        lengths = rng.integers(mean // 2, mean * 3 // 2 + 1, size=batch)
        history = lengths // 2 if has_history else lengths * 0
        ids = rng.choice(n_ids, size=lengths.sum(), p=share)
        # Two bags for each example, the current turn and the history.
        return ids, np.stack([lengths - history, history], axis=1)

    return [(side(50, True), side(12, False)) for _ in range(N_BATCHES)]


def make_ours(options, batches, optimizer):
    """Returns step(i) -> loss and gradient norm, with Thinc on our ops."""
    ops = get_dialog_ops(-1)

    def ragged(side):
        ids, sizes = side
        segments = np.repeat(np.tile([0, 1], len(sizes)), sizes.ravel())
        data = np.stack([ids, segments], axis=1).astype("i")
        return Ragged(data, sizes.sum(axis=1).astype("i"))

    inputs = [(ragged(contexts), ragged(replies)) for contexts, replies in batches]
    with using_ops(ops):
        fix_random_seed(0)
        encoder = BagEncoder(
            options.width, depth=options.depth, pooling="sqrt", dropout=options.dropout
        )
        model = BiEncoder(encoder, scale=20.0)
        set_vocabulary(model, options.n_ids)
        model.initialize(X=inputs[0])
    parameters, loss = FlatParameters(model), RankingSoftmax()
    targets = np.arange(options.batch)

    def step(index):
        scores, backprop = model.begin_update(inputs[index % N_BATCHES])
        d_scores, losses = loss(scores, targets)
        backprop(d_scores)
        norm = parameters.update(optimizer, 1 / options.batch)
        return float(losses.mean()), norm

    return step


def make_torch(torch, options, batches, is_sparse=False, is_fused=False):
    """Returns step(i) -> loss and gradient norm, with PyTorch."""
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)

    width = options.width

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.wide, self.narrow = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
            self.dropout, self.norm = nn.Dropout(options.dropout), nn.LayerNorm(width)

        def forward(self, X):
            return self.norm(X + self.dropout(self.narrow(torch.relu(self.wide(X)))))

    def tower():
        layers = [nn.Dropout(options.dropout), nn.Linear(2 * width, width)]
        return nn.Sequential(*layers, *(Residual() for _ in range(options.depth)))

    class Ranker(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.EmbeddingBag(options.n_ids, width, mode="sum", sparse=is_sparse)
            nn.init.uniform_(self.embed.weight, -0.1, 0.1)
            self.context, self.reply = tower(), tower()
            self.scale = nn.Parameter(torch.tensor(math.log(20.0)))

        def pooled(self, ids, starts, factors):
            return (self.embed(ids, starts) * factors).reshape(-1, 2 * width)

        def forward(self, contexts, replies):
            contexts = functional.normalize(self.context(self.pooled(*contexts)), dim=1)
            replies = functional.normalize(self.reply(self.pooled(*replies)), dim=1)
            return self.scale.exp() * contexts @ replies.T

    def tensors(side):
        ids, sizes = side
        flat = sizes.ravel()
        factors = 1 / np.sqrt(np.maximum(flat, 1, dtype="f"))[:, None]
        return tuple(map(torch.from_numpy, (ids, np.cumsum(flat) - flat, factors)))

    inputs = [(tensors(contexts), tensors(replies)) for contexts, replies in batches]
    model = Ranker()
    if is_sparse:
        rest = [p for name, p in model.named_parameters() if not name.startswith("embed")]
        optimizers = [
            torch.optim.SparseAdam(list(model.embed.parameters()), lr=LEARN_RATE),
            torch.optim.Adam(rest, lr=LEARN_RATE),
        ]
    else:
        fused = {"fused": True} if is_fused else {}
        optimizers = [torch.optim.Adam(model.parameters(), lr=LEARN_RATE, **fused)]
    targets = torch.arange(options.batch)

    def step(index):
        loss = functional.cross_entropy(model(*inputs[index % N_BATCHES]), targets)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        # Sparse gradients cannot be clipped together with dense ones: left out there.
        norm = 0.0 if is_sparse else nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        for optimizer in optimizers:
            optimizer.step()
        return loss.item(), float(norm)

    return step


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for name, (default, text) in OPTIONS.items():
        parser.add_argument(f"--{name}", type=type(default), default=default, help=text)
    options = parser.parse_args()
    try:
        import torch
    except ImportError:
        print("skipped: PyTorch is not installed (pip install torch)")
        return
    torch.set_num_threads(options.threads)
    batches = make_batches(options.n_ids, options.batch)
    lazy = LazyAdam(LEARN_RATE, grad_clip=MAX_NORM)
    dense = Adam(LEARN_RATE, grad_clip=MAX_NORM, use_averages=False)
    rivals = {
        "ours, thincdialog.LazyAdam.v1": make_ours(options, batches, lazy),
        "ours, Adam.v1 (dense)": make_ours(options, batches, dense),
        "torch, Adam": make_torch(torch, options, batches),
        "torch, Adam fused": make_torch(torch, options, batches, is_fused=True),
        "torch, SparseAdam": make_torch(torch, options, batches, is_sparse=True),
    }
    for step in rivals.values():
        list(map(step, range(3)))

    def measure(name):
        """Wall and CPU seconds of one step."""
        started = time.perf_counter()
        cpu, _ = cpu_seconds(lambda: list(map(rivals[name], range(options.steps))))
        return (time.perf_counter() - started) / options.steps, cpu / options.steps

    found = in_turns(rivals, measure, options.rounds)
    wall, cpu = (
        medians({name: [pair[i] for pair in pairs] for name, pairs in found.items()})
        for i in (0, 1)
    )
    print(
        f"{options.n_ids:,} ids, width {options.width}, depth {options.depth}, "
        f"batch {options.batch}; torch {torch.__version__} with {options.threads} threads; "
        f"median of {options.rounds} rounds"
    )
    print(f"{'':30} {'examples/s':>11} {'ms wall':>9} {'ms CPU':>9}")
    for name in rivals:
        rate = options.batch / wall[name]
        print(f"{name:30} {rate:11,.0f} {1e3 * wall[name]:9.1f} {1e3 * cpu[name]:9.1f}")
    ours, *rest = rivals
    for name in rest:
        print(
            f"LazyAdam.v1 against {name}: {wall[name] / wall[ours]:.2f} times the examples/s, "
            f"{cpu[name] / cpu[ours]:.2f} times per CPU second"
        )


if __name__ == "__main__":
    main()
