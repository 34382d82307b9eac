"""Turn texts into arrays: tokenizers, vocabularies, and the encoder of conversations."""

from .text_encoder import TextEncoder as TextEncoder
from .tokenizers import Tokenizer as Tokenizer
from .vocabulary import Vocabulary as Vocabulary
