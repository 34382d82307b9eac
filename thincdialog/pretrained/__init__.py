"""Published encoders from a folder, without PyTorch."""

from . import encoder, tokenizer, word_vectors
