"""Counts tokens of texts, chat messages and tools. Pure but for loading a vocabulary.

For OpenAI's encodings texts are counted exactly. For other models they are estimated
conservatively: higher than the real count in today's vocabularies for all but rare texts, so the
window is rather left with room than exceeded. The estimate for each character:

    letters of ASCII, blanks      1/3
    punctuation of ASCII          3/5
    letters in long runs          3/4    24 and more without a blank: hashes, base64
    digits                        1      some vocabularies take them one by one
    others                        half of their bytes in UTF-8; one more beyond U+FFFF (emoji)

The overhead for messages is as documented by OpenAI: 4 tokens each, and 3 for the beginning of the
answer. For calls and tools it is not documented; their JSON and a little more is counted, which is
more than they really take.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from string import digits, punctuation
from typing import Protocol

from hubbub.agents.models.base import CompletionRequest, ToolSpec
from hubbub.agents.prompt.escape import in_parts
from hubbub.agents.prompt.vocabulary import encoding_of, load_encoding
from hubbub.agents.turn.chat import ChatMessage

__all__ = [
    "ExactCounter",
    "TokenCounter",
    "TokenEstimate",
    "counter_for",
    "message_tokens",
    "question_tokens",
    "spec_tokens",
]

PER_MESSAGE, PER_CALL, PER_TOOL, PER_ANSWER = 4, 8, 10, 3
"""Overhead in tokens of a message, a call, a tool's description, and an answer."""
_LONG, _PIECE = 1000, 4096
"""Characters from which on few lines are cached, and of the pieces in which a long line is counted.
"""


_LINES = re.compile(r"[^\n]*\n(?:[^\S\n]*\n|[\r/][^\n]*\n?)*|[^\n]+")
"""A line with the blank lines after it, and lines that begin with a slash: no token of OpenAI's
encodings spans two of these."""


_MOST_BLOCK = 32_768
_LEANS = re.compile(r"[^\S\n]*\n|[\r/]")
"""What belongs to the line before it (see `_LINES`)."""


class TokenCounter(Protocol):
    """Counts the tokens of a text for a model."""

    @property
    def exact(self) -> bool:
        """Whether it counts by the model's own vocabulary."""
        ...

    def count(self, text: str) -> int:
        """Tokens of a text; as far as known, never fewer than there are."""
        ...


class _ByLines:
    """Counts line by line and caches lines, because a prompt mostly repeats the one before it.

    No token of the encodings spans two lines; for lines longer than 4096 characters, the count may
    be one token too high for each piece.
    """

    def __init__(self, measure: Callable[[str], int]):
        self._line = lru_cache(16_384)(measure)
        self._piece = lru_cache(1_024)(measure)
        self._block = lru_cache(512)(self._of_lines)
        self._blocks: Sequence[str] = ()

    def count(self, text: str) -> int:
        if len(text) <= _LONG and "\n" not in text:
            return self._line(text)
        if len(text) <= _PIECE:
            return self._of_lines(text)
        # The threads of a conversation, most of which do not change, are counted separately if each
        # begins with a line of its own.
        blocks = in_parts(text, self._blocks)
        if any(map(_LEANS.match, blocks[1:])):
            return self._of_block(text)
        if len(blocks) > 1:
            self._blocks = blocks
        return sum(map(self._of_block, blocks))

    def _of_block(self, block: str) -> int:
        return self._block(block) if len(block) <= _MOST_BLOCK else self._of_lines(block)

    def _of_lines(self, text: str) -> int:
        return sum(map(self._of_line, _LINES.findall(text)))

    def _of_line(self, line: str) -> int:
        if len(line) <= _LONG:
            return self._line(line)
        return sum(map(self._piece, _pieces(line)))


def _pieces(line: str) -> Iterator[str]:
    for at in range(0, len(line), _PIECE):
        yield line[at : at + _PIECE]


class ExactCounter(_ByLines):
    """Counts by the vocabulary of one of OpenAI's encodings."""

    exact = True

    def __init__(self, encode: Callable[[str], Sequence[int]]):
        """`encode` returns the tokens of a text, without special ones."""
        super().__init__(lambda text: len(encode(text)))


class TokenEstimate(_ByLines):
    """Estimates without a vocabulary."""

    exact = False

    def __init__(self) -> None:
        super().__init__(_estimate)


_RUN = re.compile(r"[A-Za-z0-9+/=_-]{24,}")
_ASTRAL = re.compile("[\U00010000-\U0010ffff]")
_KINDS = str.maketrans({**dict.fromkeys(digits, "0"), **dict.fromkeys(punctuation, ".")})
_LETTER, _MARK, _CROWDED, _DIGIT, _BYTE = 20, 36, 45, 60, 30
"""Sixtieths of a token."""


def _estimate(text: str) -> int:
    kinds = text.translate(_KINDS)
    numbers, marks = kinds.count("0"), kinds.count(".")
    size, other = len(text), 0
    if not text.isascii():
        bytes_of_all = len(text.encode("utf-8", "surrogatepass"))
        size = sum(map(str.isascii, text))
        other = bytes_of_all - size + 2 * len(_ASTRAL.findall(text))
    letters = size - numbers - marks
    crowded = sum(sum(map(str.isalpha, run)) for run in _RUN.findall(text)) if size >= 24 else 0
    total = letters * _LETTER + marks * _MARK + numbers * _DIGIT + other * _BYTE
    total += crowded * (_CROWDED - _LETTER)
    return -(-total // 60)


def counter_for(model: str) -> TokenCounter:
    """The counter for a model, by its name at its endpoint.

    Loading an encoding takes a third of a second: call it in a thread. Raises `ConfigError` when
    the vocabulary is damaged.
    """
    encoding = encoding_of(model)
    return (
        TokenEstimate()
        if encoding is None
        else ExactCounter(load_encoding(encoding).encode_ordinary)
    )


def message_tokens(counter: TokenCounter, message: ChatMessage) -> int:
    """Tokens of one message of a chat, including its calls."""
    tokens = PER_MESSAGE + counter.count(message["content"] or "")
    for call in message.get("tool_calls", ()):
        function = call["function"]
        in_call = counter.count(function["name"]) + counter.count(function["arguments"])
        tokens += PER_CALL + counter.count(call["id"]) + in_call
    if "tool_call_id" in message:
        tokens += counter.count(message["tool_call_id"])
    return tokens


def spec_tokens(counter: TokenCounter, spec: ToolSpec) -> int:
    """Tokens of a tool's description in a request's `tools`."""
    in_text = counter.count(spec.name) + counter.count(spec.description)
    return PER_TOOL + in_text + counter.count(spec.offered_text)


def question_tokens(counter: TokenCounter, question: CompletionRequest) -> int:
    """Tokens of a whole request."""
    messages = sum(message_tokens(counter, message) for message in question.messages)
    form = counter.count(json.dumps(question.form)) if question.form is not None else 0
    return PER_ANSWER + messages + form + sum(spec_tokens(counter, t) for t in question.tools)
