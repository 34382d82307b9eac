"""Compare training steps of a transformer: ours, without padding, and the same one in PyTorch
(eager, CPU, one thread, scaled_dot_product_attention with a mask, fused Adam).

    python tests/benchmarks/bench_transformer.py

The transformer has 4 blocks of width 128 with 4 heads, in a classifier and in a ranker. Lengths
are skewed: lognormal, median 12, at most 200 tokens. Batches are either of 64 examples in the
order of the data, as PyTorch's users make them, or of sorted examples within a budget of padded
cells that gives the same number of cells on average. Printed are examples per CPU second, medians
of the rounds.
"""

import numpy as np
from measuring import cpu_seconds, in_turns, medians, sized
from thinc.api import Ragged, fix_random_seed

from thincdialog.cli.output import table
from thincdialog.losses.class_softmax import ClassSoftmax
from thincdialog.losses.ranking import RankingSoftmax
from thincdialog.models.bi_encoder import BiEncoder
from thincdialog.models.classifier import Classifier
from thincdialog.models.parameters import FlatParameters
from thincdialog.models.transformer_encoder import TransformerEncoder
from thincdialog.models.transformer_tokens import TransformerTokens
from thincdialog.models.vocabulary_size import set_vocabulary
from thincdialog.ops.choice import get_dialog_ops, using_ops
from thincdialog.ops.dialog_fast_ops import DialogFastOps
from thincdialog.optimizers.lazy_adam import LazyAdam

N_IDS, DEPTH = sized((32768, 4), (512, 1))
N_CLASSES, WIDTH, HEADS = 150, 128, 4
N_EXAMPLES, FIXED, LEARN_RATE, DROPOUT, SCALE = sized(1280, 16), 64, 1e-3, 0.1, 20.0
ROUNDS = sized(5, 1)


def draw_batches():
    """Draw the lengths of batches made in each way: of fixed size, and by a budget."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(np.log(12), 0.8, N_EXAMPLES).astype(int), 1, 200)
    fixed = np.split(lengths, range(FIXED, N_EXAMPLES, FIXED))
    budget = int(np.mean([len(batch) * batch.max() for batch in fixed]))
    rest, words = np.sort(lengths)[::-1].copy(), []
    while len(rest):
        n = max(1, budget // rest[0])
        words.append(rest[:n])
        rest = rest[n:]
    return {"fixed": fixed, "words": words}


def draw_side(rng, lengths):
    return rng.integers(8, N_IDS, int(lengths.sum()))


def make_ours(ops, is_ranker):
    """Return step(lengths)."""
    rng, optimizer = np.random.default_rng(1), LazyAdam(LEARN_RATE)
    with using_ops(ops):
        fix_random_seed(0)
        tokens = TransformerTokens(WIDTH, DEPTH, HEADS, positions="learned", dropout=DROPOUT)
        encoder = TransformerEncoder(tokens, dropout=DROPOUT)
        model = BiEncoder(encoder, share="all", scale=SCALE) if is_ranker else Classifier(encoder)
        set_vocabulary(model, N_IDS)

    def ragged(lengths):
        ids = draw_side(rng, lengths)
        data = np.stack([ids, np.zeros_like(ids)], axis=1).astype("i")
        return Ragged(data, lengths.astype("i"))

    one = ragged(np.array([1]))
    model.initialize(X=(one, one)) if is_ranker else model.initialize(
        X=one, Y=ops.alloc2f(1, N_CLASSES)
    )
    parameters = FlatParameters(model)
    loss = RankingSoftmax() if is_ranker else ClassSoftmax()

    def step(lengths):
        n = len(lengths)
        X = (ragged(lengths), ragged(lengths)) if is_ranker else ragged(lengths)
        targets = np.arange(n) if is_ranker else rng.integers(0, N_CLASSES, n)
        scores, backprop = model.begin_update(X)
        d_scores, _ = loss(scores, targets)
        backprop(d_scores)
        parameters.update(optimizer, 1 / n)

    return step


def make_torch(torch, is_ranker, device="cpu"):
    """Return prepare(ids of all texts, lengths), which pads them, and step(prepared ids of each
    side, numbers of the right replies or classes)."""
    nn, functional = torch.nn, torch.nn.functional
    torch.manual_seed(0)

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norms = nn.ModuleList([nn.LayerNorm(WIDTH) for _ in range(2)])
            self.project, self.mix = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
            self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)
            self.drop = nn.Dropout(DROPOUT)

        def forward(self, X, mask):
            n, length, _ = X.shape
            QKV = self.project(self.norms[0](X)).view(n, length, 3, HEADS, WIDTH // HEADS)
            Q, K, V = QKV.permute(2, 0, 3, 1, 4)
            found = functional.scaled_dot_product_attention(Q, K, V, attn_mask=mask)
            X = X + self.drop(self.mix(found.transpose(1, 2).reshape(n, length, WIDTH)))
            hidden = functional.gelu(self.wide(self.norms[1](X)))
            return X + self.drop(self.narrow(hidden))

    class Encoder(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.places = nn.Embedding(N_IDS, WIDTH), nn.Embedding(256, WIDTH)
            self.blocks = nn.ModuleList([Block() for _ in range(DEPTH)])
            self.norm, self.out = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, WIDTH)
            self.drop = nn.Dropout(DROPOUT)

        def forward(self, ids, is_token, is_full):
            X = self.drop(self.embed(ids) + self.places.weight[: ids.shape[1]])
            # Without padding no mask is needed, and attention is faster.
            mask = None if is_full else is_token[:, None, None, :]
            for block in self.blocks:
                X = block(X, mask)
            X = self.norm(X) * is_token[..., None]
            return self.out(self.drop(X.sum(1) / is_token.sum(1, keepdim=True)))

    encoder, head = Encoder().to(device), nn.Linear(WIDTH, N_CLASSES).to(device)
    scale = nn.Parameter(torch.tensor(np.log(SCALE).astype("f"), device=device))
    parameters = [*encoder.parameters(), *([scale] if is_ranker else head.parameters())]
    optimizer = torch.optim.Adam(parameters, lr=LEARN_RATE, fused=True)

    def prepare(all_ids, lengths):
        is_token = np.arange(lengths.max()) < lengths[:, None]
        ids = np.zeros(is_token.shape, dtype=np.int64)
        ids[is_token] = all_ids
        given = (torch.from_numpy(each).to(device) for each in (ids, is_token))
        return (*given, bool(is_token.all()))

    def step(sides, targets):
        optimizer.zero_grad(set_to_none=True)
        vectors = encoder(*sides[0])
        if is_ranker:
            replies = functional.normalize(encoder(*sides[1]), dim=1)
            scores = scale.exp() * functional.normalize(vectors, dim=1) @ replies.T
        else:
            scores = head(vectors)
        functional.cross_entropy(scores, targets).backward()
        optimizer.step()

    return prepare, step


def drawn_steps(torch, is_ranker):
    """Return step(lengths), with PyTorch."""
    prepare, step = make_torch(torch, is_ranker)
    rng = np.random.default_rng(1)

    def drawn_step(lengths):
        n, sides = len(lengths), range(1 + is_ranker)
        targets = np.arange(n) if is_ranker else rng.integers(0, N_CLASSES, n)
        drawn = [prepare(draw_side(rng, lengths), lengths) for _ in sides]
        step(drawn, torch.from_numpy(targets))

    return drawn_step


def main():
    try:
        import torch
    except ImportError:
        print("skipped: PyTorch is not installed (pip install torch)")
        return
    torch.set_num_threads(1)
    batches = draw_batches()
    rows = [["", "batches", "examples/CPU s", "x PyTorch, same batches", "x PyTorch, fixed"]]
    for name, is_ranker in (("classifier", False), ("ranker", True)):
        steps = {
            "numpy ops": make_ours(get_dialog_ops(-1), is_ranker),
            "fast ops": make_ours(DialogFastOps(), is_ranker),
            "PyTorch": drawn_steps(torch, is_ranker),
        }
        rivals = [(who, how) for how in batches for who in steps]
        for who, how in rivals:
            list(map(steps[who], batches[how][:2]))

        def measure(rival, steps=steps):
            who, how = rival
            seconds, _ = cpu_seconds(lambda: list(map(steps[who], batches[how])))
            return N_EXAMPLES / seconds

        found = medians(in_turns(rivals, measure, ROUNDS))
        for who, how in rivals:
            rate = found[who, how]
            ratios = (rate / found["PyTorch", how], rate / found["PyTorch", "fixed"])
            figures = (f"{rate:,.0f}", *(f"{ratio:.2f}" for ratio in ratios))
            rows.append([f"{name}, {who}", how, *figures])
    print(f"torch {torch.__version__}, {N_EXAMPLES:,} examples a round, {ROUNDS} rounds")
    print(table(rows))


if __name__ == "__main__":
    main()
