"""Splits calculator input into tokens: numbers, names, operators."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Problem", "Token", "tokens"]

MAX_EXPONENT = 1000


class Problem(ValueError):
    """The input cannot be parsed or calculated. `at` is the position of the error, from 0."""

    def __init__(self, message: str, at: int = 0):
        self.message, self.at = message, at
        super().__init__(message)

    def pointed(self, text: str) -> str:
        """The input with an arrow under the error's position, then the message."""
        return f"{text}\n{' ' * self.at}^ {self.message}"


@dataclass(frozen=True)
class Token:
    """`kind` is number, name, op, convert, call (a name before a parenthesis) or end."""

    kind: str
    text: str
    at: int
    end: int
    value: Fraction = Fraction(0)


_GROUPED = r"\d{1,3}(?:,\d{3})+(?![\d,])(?:\.\d+)?|"
_PLAIN = r"\d+(?:_\d+)*(?:\.\d+)?|\.\d+"
_EXPONENT = r"(?:[eE][+-]?\d+(?![\w.]))?"
_NUMBER = re.compile(f"(?:{_GROUPED}{_PLAIN}){_EXPONENT}")
_ARGUMENT = re.compile(f"(?:{_PLAIN}){_EXPONENT}")
"""Between the parentheses of a function a comma separates arguments, not thousands."""
_PHRASE = re.compile(
    r"(?:the )?(?:square root|cube root|sqrt|cbrt) of\b|sqrt(?=\s*[\d.])"
    r"|(?:multiplied by|divided by|to the power of|raised to|plus|minus|times|over|per|mod|of)\b"
    r"|\*\*|//|->|[-+*/^%!(),=→×·÷−–²³√∛]",
    re.IGNORECASE,
)
_LETTERS = r"[^\W\d_²³]+"
_WORD = re.compile(rf"{_LETTERS}\d{{1,2}}(?![\w.])|{_LETTERS}|°(?:{_LETTERS})?|['\"′″]")
_SPACE = re.compile(r"\s*")

_SYNONYMS = {
    "sqrt": "√",
    "sqrt of": "√",
    "square root of": "√",
    "cbrt of": "∛",
    "cube root of": "∛",
    "multiplied by": "*",
    "divided by": "/",
    "to the power of": "^",
    "raised to": "^",
    "plus": "+",
    "minus": "-",
    "times": "*",
    "over": "/",
    "per": "/",
    "mod": "mod",
    "**": "^",
    "×": "*",
    "·": "*",
    "÷": "/",
    "−": "-",
    "–": "-",
}
_CONVERT = {"to", "into", "in", "as", "=", "->", "→"}
_MARKS = {"'": "ft", "′": "ft", '"': "inch", "″": "inch"}
_POSTFIX_WORDS = {"squared": "²", "cubed": "³"}


def tokens(text: str) -> Iterator[Token]:
    """Split `text` into tokens. Raises Problem at an invalid one."""
    calls: list[bool] = []
    at = _skip(text, 0)
    while at < len(text):
        token = _token(text, at, in_call=bool(calls and calls[-1]))
        if token.text == "(":
            calls.append(at > 0 and bool(re.search(r"[^\W\d_]\w*\s*\Z", text[:at])))
        elif token.text == ")" and calls:
            calls.pop()
        yield token
        at = _skip(text, token.end)
    yield Token("end", "", len(text), len(text))


def _skip(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _token(text: str, at: int, in_call: bool) -> Token:
    if match := (_ARGUMENT if in_call else _NUMBER).match(text, at):
        return Token("number", match[0], at, match.end(), _value(match[0], at))
    if match := _PHRASE.match(text, at):
        word = match[0].lower().removeprefix("the ")
        kind = "convert" if word in _CONVERT else "op"
        return Token(kind, _SYNONYMS.get(word, word), at, match.end())
    if match := _WORD.match(text, at):
        return _word_token(text, match)
    raise Problem(f"{text[at]!r} means nothing here", at)


def _word_token(text: str, match: re.Match[str]) -> Token:
    word, at, end = match[0], match.start(), match.end()
    lower = word.lower()
    if re.fullmatch(r"x\d{1,2}", lower):
        return Token("name", "x", at, at + 1)
    if lower in _POSTFIX_WORDS:
        return Token("op", _POSTFIX_WORDS[lower], at, end)
    if lower in _CONVERT:
        return Token("convert", lower, at, end)
    called = lower != "x" and text[_skip(text, end) :].startswith("(")  # 3 x (4) is a product
    kind = "call" if called else "name"
    return Token(kind, _MARKS.get(word, word), at, end)


def _value(text: str, at: int) -> Fraction:
    mantissa, _, exponent = text.replace(",", "").replace("_", "").lower().partition("e")
    if exponent and abs(int(exponent)) > MAX_EXPONENT:
        raise Problem(f"an exponent of {exponent} is more than I handle", at)
    return Fraction(mantissa) * Fraction(10) ** int(exponent or 0)
