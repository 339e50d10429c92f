"""WordPiece as BERT does it, in Python: the tokens of the static table and of MiniLM.

Splitting a text is a regular expression, and a word's pieces are remembered, so this is
quicker than crossing into a native tokenizer for each message, and the daemon need not load
one (tests compare it with the `tokenizers` package token by token).
"""

import json
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

WORD_CHARS: Final = 100
"""A longer word is one unknown token (`max_input_chars_per_word`)."""

REMEMBERED_WORDS: Final = 20_000
"""Words whose pieces are kept; then all are dropped. About 4 MB."""

CHARACTERS: Final = 8_192
"""Characters of which is remembered what they are."""

_ASCII: Final = re.compile(r"[A-Za-z0-9]+|[!-/:-@\[-`{-~]")
_WORDS: Final = re.compile(r"[^\s!-/:-@\[-`{-~]+|[!-/:-@\[-`{-~]")
_CHINESE: Final = re.compile(
    "([\u4e00-\u9fff\u3400-\u4dbf\uf900-\ufaff\U00020000-\U0002a6df"
    "\U0002a700-\U0002ebef\U0002f800-\U0002fa1f])"
)
_COMBINING: Final = frozenset(
    chr(c)
    for c in (*range(0x300, 0x3100), *range(0xFE00, 0xFE10), *range(0xFE20, 0xFE30))
    if c > 0x3100 or unicodedata.category(chr(c)) == "Mn"
)
_PLANES: Final = 0x1F000
"""No character beyond is punctuation (Unicode 16 and before; emoji are symbols)."""


class WordPiece:
    """A vocabulary and the words seen lately."""

    def __init__(self, vocabulary: dict[str, int], unknown: str = "[UNK]") -> None:
        self._vocabulary = vocabulary
        self._unknown = vocabulary[unknown]
        self._pieces: dict[str, tuple[int, ...]] = {}

    @classmethod
    def load(cls, path: str) -> "WordPiece":
        """From a `tokenizer.json` of the tokenizers package with a WordPiece model."""
        with open(path, encoding="utf-8") as file:
            return cls(json.load(file)["model"]["vocab"])

    @property
    def unknown(self) -> int:
        """The id of what the vocabulary cannot spell."""
        return self._unknown

    def split(self, text: str) -> list[str]:
        """The normalised words and punctuation marks of ``text``, in order."""
        if text.isascii():
            return _ASCII.findall(text.lower())
        return _WORDS.findall(_normal(text))

    def pieces(self, word: str) -> tuple[int, ...]:
        """The token ids of one word of `split`."""
        return self._pieces.get(word) or self._remember(word)

    def tokens(self, words: Iterable[str]) -> list[int]:
        """Of each word of `split` the token that is all of it, -1 when it takes several or is
        unknown."""
        known = self._vocabulary.get
        return [known(word, -1) for word in words]

    def tokenize(self, text: str, limit: int) -> list[int]:
        """The first ``limit`` token ids of ``text``, without special tokens."""
        ids: list[int] = []
        known = self._pieces
        for word in self.split(text):
            ids += known.get(word) or self._remember(word)
            if len(ids) >= limit:
                return ids[:limit]
        return ids

    def _remember(self, word: str) -> tuple[int, ...]:
        if len(self._pieces) >= REMEMBERED_WORDS:
            self._pieces.clear()
        pieces = self._pieces[word] = self._spell(word)
        return pieces

    def _spell(self, word: str) -> tuple[int, ...]:
        if len(word) > WORD_CHARS:
            return (self._unknown,)
        vocabulary, start, found = self._vocabulary, 0, []
        while start < len(word):
            prefix = "##" if start else ""
            for end in range(len(word), start, -1):
                piece = vocabulary.get(prefix + word[start:end])
                if piece is not None:
                    found.append(piece)
                    start = end
                    break
            else:
                return (self._unknown,)
        return tuple(found)


def _normal(text: str) -> str:
    """BERT's cleaning: controls away, Chinese characters and the punctuation beyond ASCII on their
    own, no accents, lower. What is to be replaced is looked for among the different characters of
    the text, which are few: an expression over all of it takes three times as long."""
    for one in filter(_is_control, set(text)):
        text = text.replace(one, "")
    text = _CHINESE.sub(r" \1 ", text)
    text = unicodedata.normalize("NFD", text)
    for one in _COMBINING.intersection(text):
        text = text.replace(one, "")
    text = text.lower()
    for one in filter(_is_mark, set(text)):
        text = text.replace(one, f" {one} ")
    return text


@lru_cache(CHARACTERS)
def _is_control(character: str) -> bool:
    if character in "\0\ufffd":
        return True
    return unicodedata.category(character)[0] == "C" and not character.isspace()


@lru_cache(CHARACTERS)
def _is_mark(character: str) -> bool:
    """Whether it is punctuation beyond ASCII."""
    if not "\x7f" < character < chr(_PLANES):
        return False
    return unicodedata.category(character)[0] == "P"
