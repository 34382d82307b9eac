"""Compare the ranker's training steps with those of the same model in PyTorch (eager, CPU).

    python tests/benchmarks/bench_torch_ranker.py

The sizes are those of configs/ranker.cfg. Both train on the same ids: bags of embeddings (one table
for both sides; current turn and history concatenated), a linear layer for each side, cosines times
a learned factor, softmax over the batch, and clipping of the gradient's norm. Printed are medians
of the rounds' means; the rivals take turns.
"""

import math
import time

import numpy as np
from measuring import cpu_seconds, in_turns, sized
from thinc.api import Adam, Ragged, fix_random_seed

from thincdialog.cli.output import table
from thincdialog.losses.ranking import RankingSoftmax
from thincdialog.models.bag_encoder import BagEncoder
from thincdialog.models.bi_encoder import BiEncoder
from thincdialog.models.parameters import FlatParameters
from thincdialog.models.vocabulary_size import set_vocabulary
from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.optimizers.lazy_adam import LazyAdam

N_IDS, WIDTH, BATCH, SCALE = sized(65544, 512), 256, 512, 20.0
N_BATCHES, LEARN_RATE, MAX_NORM = 8, 1e-3, 1.0
# Rounds, in each of which every rival is measured; steps per round; threads of PyTorch.
ROUNDS, STEPS, THREADS = sized(7, 1), sized(8, 1), 2


def make_batches():
    """Draw ids by Zipf's law: contexts of 25 to 75 ids, half of them history, and replies of
    6 to 18. RETURNS for each side: ids, and the sizes of its bags, shape (batch, 2)."""
    rng = np.random.default_rng(0)
    share = 1 / np.arange(1, N_IDS + 1)
    share /= share.sum()

    def side(mean, has_history):
        lengths = rng.integers(mean // 2, mean * 3 // 2 + 1, size=BATCH)
        history = lengths // 2 if has_history else lengths * 0
        ids = rng.choice(N_IDS, size=lengths.sum(), p=share)
        # Each example has two bags, the current turn and the history.
        return ids, np.stack([lengths - history, history], axis=1)

    return [(side(50, True), side(12, False)) for _ in range(N_BATCHES)]


def make_ours(batches, optimizer):
    """Return step(i), with Thinc on our ops, which returns loss and gradient norm."""
    ops = get_dialog_ops(-1)

    def ragged(side):
        ids, sizes = side
        segments = np.repeat(np.tile([0, 1], len(sizes)), sizes.ravel())
        data = np.stack([ids, segments], axis=1).astype("i")
        return Ragged(data, sizes.sum(axis=1).astype("i"))

    inputs = [(ragged(contexts), ragged(replies)) for contexts, replies in batches]
    with using_ops(ops):
        fix_random_seed(0)
        model = BiEncoder(BagEncoder(WIDTH, depth=0, pooling="sqrt", dropout=0.0), scale=SCALE)
        set_vocabulary(model, N_IDS)
        model.initialize(X=inputs[0])
    parameters, loss = FlatParameters(model), RankingSoftmax()
    targets = np.arange(BATCH)

    def step(index):
        scores, backprop = model.begin_update(inputs[index % N_BATCHES])
        d_scores, losses = loss(scores, targets)
        backprop(d_scores)
        norm = parameters.update(optimizer, 1 / BATCH)
        return float(losses.mean()), norm

    return step


def make_torch(torch, batches, is_sparse=False, is_fused=False, device="cpu"):
    """Return step(i), with PyTorch, which returns loss and gradient norm as tensors."""
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)

    class Ranker(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed = nn.EmbeddingBag(N_IDS, WIDTH, mode="sum", sparse=is_sparse)
            nn.init.uniform_(self.embed.weight, -0.1, 0.1)
            self.context, self.reply = (nn.Linear(2 * WIDTH, WIDTH) for _ in range(2))
            self.scale = nn.Parameter(torch.tensor(math.log(SCALE)))

        def pooled(self, ids, starts, factors):
            return (self.embed(ids, starts) * factors).reshape(-1, 2 * WIDTH)

        def forward(self, contexts, replies):
            contexts = functional.normalize(self.context(self.pooled(*contexts)), dim=1)
            replies = functional.normalize(self.reply(self.pooled(*replies)), dim=1)
            return self.scale.exp() * contexts @ replies.T

    def tensors(side):
        ids, sizes = side
        flat = sizes.ravel()
        factors = 1 / np.sqrt(np.maximum(flat, 1, dtype="f"))[:, None]
        given = (ids, np.cumsum(flat) - flat, factors)
        return tuple(torch.from_numpy(each).to(device) for each in given)

    def targets(contexts, replies):
        return torch.arange(len(contexts[1]), device=device) % len(replies[1])

    inputs = [(*map(tensors, batch), targets(*batch)) for batch in batches]
    model = Ranker().to(device)
    if is_sparse:
        rest = [p for name, p in model.named_parameters() if not name.startswith("embed")]
        optimizers = [
            torch.optim.SparseAdam(list(model.embed.parameters()), lr=LEARN_RATE),
            torch.optim.Adam(rest, lr=LEARN_RATE),
        ]
    else:
        fused = {"fused": True} if is_fused else {}
        optimizers = [torch.optim.Adam(model.parameters(), lr=LEARN_RATE, **fused)]

    def step(index):
        contexts, replies, right = inputs[index % len(inputs)]
        loss = functional.cross_entropy(model(contexts, replies), right)
        for optimizer in optimizers:
            optimizer.zero_grad()
        loss.backward()
        # PyTorch cannot clip sparse gradients together with dense ones: clipping is left out.
        norm = 0.0 if is_sparse else nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        for optimizer in optimizers:
            optimizer.step()
        return loss.detach(), norm

    return step


def main():
    try:
        import torch
    except ImportError:
        print("skipped: PyTorch is not installed (pip install torch)")
        return
    torch.set_num_threads(THREADS)
    batches = make_batches()
    lazy = LazyAdam(LEARN_RATE, grad_clip=MAX_NORM)
    dense = Adam(LEARN_RATE, grad_clip=MAX_NORM, use_averages=False)
    rivals = {
        "ours, thincdialog.LazyAdam.v1": make_ours(batches, lazy),
        "ours, Adam.v1 (dense)": make_ours(batches, dense),
        "torch, Adam": make_torch(torch, batches),
        "torch, Adam fused": make_torch(torch, batches, is_fused=True),
        "torch, SparseAdam": make_torch(torch, batches, is_sparse=True),
    }
    for step in rivals.values():
        list(map(step, range(3)))

    def measure(name):
        """Return the wall and CPU seconds of one step."""
        started = time.perf_counter()
        cpu, _ = cpu_seconds(lambda: list(map(rivals[name], range(STEPS))))
        return (time.perf_counter() - started) / STEPS, cpu / STEPS

    found = in_turns(rivals, measure, ROUNDS)
    print(
        f"{N_IDS:,} ids, width {WIDTH}, batch {BATCH}; torch {torch.__version__} with {THREADS} "
        f"threads; median of {ROUNDS} rounds; ratios are those of LazyAdam.v1 to the others"
    )
    rows = [["", "examples/s", "ms wall", "ms CPU", "x examples/s", "x per CPU second"]]
    ours = np.median(next(iter(found.values())), axis=0)
    for name, seconds in found.items():
        wall, cpu = middle = np.median(seconds, axis=0)
        figures = (1e3 * wall, 1e3 * cpu, *(middle / ours))
        rows.append([name, f"{BATCH / wall:,.0f}", *(f"{figure:.2f}" for figure in figures)])
    print(table(rows))


if __name__ == "__main__":
    main()
