"""Write a small table in Model2Vec's layout, and a tokenizer like BERT's."""

import json

import numpy as np

WORDS = ["hello", "there", "red", "lamp", "garden", "a", "is", "in", "the", "?", "it", "what"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *WORDS, *"bcdeghlmnoprtw", "##s", "##en", "##ed"]


def write_pieces(path):
    """Write a tokenizer like BERT's."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    rows = {piece: row for row, piece in enumerate(PIECES)}
    tokenizer = Tokenizer(models.WordPiece(rows, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.save(str(path))


def write_table(folder, width=6, *, normalize=False, kind=np.float32, **config):
    """Write a table in Model2Vec's layout. Return its vectors."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True)
    E = np.random.default_rng(0).normal(size=(len(PIECES), width)).astype(kind)
    save_file({"embeddings": E}, folder / "model.safetensors")
    write_pieces(folder / "tokenizer.json")
    settings = {"model_type": "model2vec", "normalize": normalize, **config}
    (folder / "config.json").write_text(json.dumps(settings))
    return E.astype("f")
