"""Tokenizers, one per file; importing the package registers all of them."""

from .byte_tokenizer import ByteTokenizer as ByteTokenizer
from .hash_ngrams import HashNgramTokenizer as HashNgramTokenizer
from .subwords import SubwordTokenizer as SubwordTokenizer
from .tokenizer import Tokenizer as Tokenizer
from .views import ViewsTokenizer as ViewsTokenizer
from .vocabulary_tokenizer import CharacterTokenizer as CharacterTokenizer
from .vocabulary_tokenizer import WhitespaceTokenizer as WhitespaceTokenizer
from .word_ngrams import WordNgramTokenizer as WordNgramTokenizer
from .word_tokenizer import WordTokenizer as WordTokenizer
