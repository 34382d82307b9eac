"""Build models from a published encoder, with a vector for each token or for each text."""

from typing import Any, Callable, List, Literal, Optional, Tuple, cast
from weakref import WeakValueDictionary

import numpy as np
from thinc.api import Linear, Model, chain, with_array
from thinc.types import Floats2d, Ragged
from thinc.util import partial

from ..data.special_tokens import N_SPECIAL
from ..errors import ModelError
from ..layers.dropout import CheckedDropout
from ..layers.fill_empty import fill_empty
from ..layers.learned_positions import LearnedPositions
from ..layers.normalise import L2Normalise, LayerNorm
from ..layers.pool import pool
from ..layers.post_norm_block import PostNormBlock
from ..layers.token_embed import TokenEmbed
from ..registry import registry
from .families import LAYER, TABLE, WORDS
from .folder import PretrainedFolder, read_folder
from .frozen import TextVectors, frozen_encoder, some_texts
from .saved_encoder import SavedEncoder

Pooling = Literal["folder", "mean", "max", "first"]
# Number of tokens in a batch of `encode`. It is small, so that the rows of the widest layer stay in
# the cache of a core.
_TOKENS_AT_ONCE = 1024
# Text vectors of the frozen encoders that models in memory use.
_in_use: "WeakValueDictionary[Tuple, TextVectors]" = WeakValueDictionary()


@registry.models("thincdialog.PretrainedTokens.v1")
def PretrainedTokens(folder: str, dropout: float = 0.1) -> Model[Ragged, Ragged]:
    """Build a published encoder that returns a vector for each token, and is trained further like
    any other model.

    It needs the tokenizer ``thincdialog.Pretrained.v1`` with the same folder.

    folder (str): Folder of the encoder: config.json, tokenizer.json and model.safetensors.
    dropout (float): Probability of zeroing an element of the embeddings, and of the output of each
        sublayer.
    X (Ragged): Ids and segments, int32, shape (n_tokens, 2); segments are ignored.
    RETURNS (Model[Ragged, Ragged]): Output shape (n_tokens, width of the encoder), float32.
    RAISES (ModelError): If the folder holds no supported encoder.
    SOURCE: Devlin et al. 2019, https://arxiv.org/abs/1810.04805
    """
    found = read_folder(folder)
    model = _tokens(found, dropout)
    model.attrs["saved_encoder"] = SavedEncoder(folder, found, is_included=True)
    return model


@registry.models("thincdialog.PretrainedEncoder.v1")
def PretrainedEncoder(
    folder: str,
    frozen: bool = True,
    pooling: Pooling = "folder",
    dropout: float = 0.1,
    n_segments: int = 1,
    vectors: Optional[str] = None,
    max_gb: float = 8.0,
    include_encoder: bool = True,
) -> Model[Ragged, Floats2d]:
    """Build a published encoder that returns one vector for each text, the same vector as
    sentence-transformers.

    It needs the tokenizer ``thincdialog.Pretrained.v1`` with the same folder. A frozen encoder
    reads each turn of a conversation by itself; ``train`` computes the vectors of all distinct
    texts first, and keeps them on disk for later runs.

    folder (str): Folder of the encoder: config.json, tokenizer.json and model.safetensors, and if
        there are any, sentence-transformers' modules (pooling, dense, normalisation).
    frozen (bool): Whether the weights are not trained, and so are not parameters of the model.
    pooling (str): How to pool the vectors of tokens: "mean", "max", "first" (the [CLS] token), or
        "folder" (the pooling in modules.json; without it, the mean).
    dropout (float): Probability of zeroing an element, as in ``PretrainedTokens``; only for an
        encoder that is trained.
    n_segments (int): For a frozen encoder, the number of vectors that are concatenated: those of
        the current turn and of the turns before it. The last one is the mean of all older turns.
    vectors (Optional[str]): Folder for the vectors of a frozen encoder; None for
        thincdialog/vectors in the user's cache (~/.cache or $XDG_CACHE_HOME).
    max_gb (float): Largest size of that folder in GB; the files that were used least recently are
        removed.
    include_encoder (bool): Whether a saved model contains the encoder. If not, the model refers to
        ``folder`` and to a checksum.
    X (Ragged): Ids and segments, int32, shape (n_tokens, 2).
    RETURNS (Model[Ragged, Floats2d]): Output shape (n_examples, width), or (n_examples,
        n_segments * width) if the encoder is frozen, float32.
    RAISES (ModelError): If the folder holds no supported encoder.
    SOURCE: Reimers and Gurevych 2019, https://arxiv.org/abs/1908.10084
    """
    found = read_folder(folder)
    encoder = text_encoder(found, pooling, 0.0 if frozen else dropout)
    if frozen:
        # Members of a committee share one encoder.
        key = (found.path, found.checksum, pooling, vectors, max_gb, encoder.ops)
        texts = TextVectors(found, pooling, partial(_compute, encoder), vectors, max_gb)
        encoder = frozen_encoder(_in_use.setdefault(key, texts), n_segments)
        encoder.init = partial(_check_ids, found)
    encoder.attrs["saved_encoder"] = SavedEncoder(folder, found, include_encoder)
    return encoder


def text_encoder(
    folder: PretrainedFolder, pooling: Pooling = "folder", dropout: float = 0.0
) -> Model[Ragged, Floats2d]:
    """Build the layers of ``PretrainedEncoder``. The weights are read by ``initialize``.

    folder (PretrainedFolder): Folder of the encoder.
    pooling, dropout: See ``PretrainedEncoder``.
    """
    how: Any = folder.pooling if pooling == "folder" else pooling
    layers: List[Model] = [_tokens(folder, dropout), pool(how)]
    for each in folder.dense:
        layers.append(Linear(*each.W.shape))
        layers[-1].init = partial(_set, W=each.W, b=each.b)
        if each.has_tanh:
            layers.append(Model("tanh", _forward_tanh))
    if folder.normalise:
        layers.append(L2Normalise())
    model = cast(Model[Ragged, Floats2d], chain(*layers))
    model.set_dim("nO", folder.width, force=True)
    return model


def encode(model: Model[Ragged, Floats2d], ids: Any, lengths: Any) -> np.ndarray:
    """Compute the vectors of texts, without gradients. Texts of similar length share a batch.

    model (Model[Ragged, Floats2d]): An initialized encoder, such as a ``text_encoder``.
    ids (np.ndarray): Ids of all texts, one after the other, shape (n_tokens,), int32.
    lengths (np.ndarray): Number of tokens of each text, shape (n_texts,).
    RETURNS (np.ndarray): The vectors, shape (n_texts, width), float32, on the host.
    """
    lengths = np.asarray(lengths, dtype=np.int64)
    vectors = np.empty((len(lengths), model.get_dim("nO")), dtype="f")
    order = lengths.argsort(kind="stable")
    batch_of = lengths[order].cumsum() // _TOKENS_AT_ONCE
    for rows in np.split(order, np.flatnonzero(np.diff(batch_of)) + 1):
        some, of_each = some_texts(ids, lengths, rows)
        tokens = np.stack([some, np.zeros_like(some)], axis=1).astype("i")
        batch = Ragged(cast(Any, tokens), cast(Any, of_each.astype("i")))
        vectors[rows] = model.ops.to_numpy(model.predict(batch))
    return vectors


def _compute(model: Model[Ragged, Floats2d], ids: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    # The weights are read when the first vector is computed.
    if not model.attrs.get("has_weights"):
        model.initialize()
        model.attrs["has_weights"] = True
    return encode(model, ids, lengths)


def _check_ids(folder: PretrainedFolder, model: Model, X: Any = None, Y: Any = None) -> None:
    n_ids = N_SPECIAL + folder.sizes.n_pieces
    n_known = model.maybe_get_dim("nV") or n_ids
    if n_ids != n_known:
        raise ModelError(
            f"the tokenizer has {n_known:,} ids, but the encoder reads {n_ids:,}: use the "
            "tokenizer thincdialog.Pretrained.v1 with the encoder's folder."
        )


def _tokens(folder: PretrainedFolder, dropout: float) -> Model[Ragged, Ragged]:
    sizes = folder.sizes
    layers: List[Model] = [fill_empty(), TokenEmbed(sizes.width, n_segments=1)]
    if sizes.family != TABLE:
        layers.append(LearnedPositions(sizes.width, sizes.n_places))
        layers.append(with_array(LayerNorm(sizes.width, sizes.eps)))
        layers.append(CheckedDropout(dropout))
    settings: Any = {"activation": sizes.activation, "dropout": dropout, "eps": sizes.eps}
    for _ in range(sizes.depth):
        layers.append(
            PostNormBlock(sizes.width, n_heads=sizes.n_heads, nH=sizes.hidden, **settings)
        )
    model = cast(Model[Ragged, Ragged], chain(*layers))
    model.set_dim("nO", sizes.width, force=True)
    model.init = partial(_init_tokens, folder)
    return model


def _init_tokens(
    folder: PretrainedFolder, model: Model, X: Optional[Ragged] = None, Y: Any = None
) -> None:
    _, embed, *others = model.layers
    _check_ids(folder, embed)
    embed.set_dim("nV", N_SPECIAL + folder.sizes.n_pieces)
    tensors = folder.tensors()
    types = tensors.get("embeddings.token_type_embeddings.weight", 0 * tensors[WORDS][:1])
    _set(embed, E=np.pad(tensors[WORDS], ((N_SPECIAL, 0), (0, 0))), S=types[:1])
    if not others:  # A table.
        return
    places, norm, _, *blocks = others
    _set(places, P=tensors["embeddings.position_embeddings.weight"][folder.sizes.first_place :])
    named: List[Tuple] = [(norm.layers[0], "embeddings.LayerNorm")]
    for i, block in enumerate(blocks):
        attention, _, normalise, net, normalise_last = block.layers
        query, key, value, *rest = (f"encoder.layer.{i}.{name}" for name, *_ in LAYER)
        nodes = (attention.layers[1], normalise, *net.layers[:2], normalise_last)
        named += [(attention.layers[0], query, key, value), *zip(nodes, rest)]
    for node, *names in named:
        weight, bias = (
            np.concatenate([tensors[f"{name}.{kind}"] for name in names])
            for kind in ("weight", "bias")
        )
        # BLAS takes columns that are contiguous 2 % faster than rows.
        _set(node, **{node.param_names[0]: np.asfortranarray(weight)}, b=bias)


def _set(node: Model, X: Any = None, Y: Any = None, **params: Any) -> None:
    for name, value in params.items():
        node.set_param(name, node.ops.asarray_f(value))


def _forward_tanh(model: Model, X: Floats2d, is_train: bool) -> Tuple[Floats2d, Callable]:
    Y = model.ops.xp.tanh(X)
    return Y, lambda dY: dY * (1 - Y * Y)
