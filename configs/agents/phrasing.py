"""Normalises people's wording: removes politeness and reorders words."""

from __future__ import annotations

import re

import units

__all__ = ["as_calculation", "plain_question", "split_target", "unaddressed", "without_name"]

_MENTION = re.compile(r"\A(?:\s*@[A-Za-z0-9_-]+[,:]?\s*)+")
_OPENING = re.compile(
    r"\A(?:please|hey|hi|hello|ok|okay|so|and|now|then|well"
    r"|(?:can|could|would) you(?: please)?|tell me|give me|show me|i need|i want|do you know"
    r"|what(?:'s|’s|s| is| are| was| were| would be| will be)|how much (?:is|are|was|were)"
    r"|calculate|compute|convert|evaluate|solve|work out)\b[,:]?\s+",
    re.IGNORECASE,
)
_CLOSING = re.compile(r"(?:\s*[?.]+|,?\s+(?:please|thanks|thank you)|\s*=)+\s*\Z", re.IGNORECASE)
_HOW_MANY = re.compile(
    r"\Ahow many (?P<unit>.+?) (?:(?:is|are|was|were|make|makes)(?: there)?(?: in)?"
    r"|does .{1,20}? have|fit into|in) (?P<rest>.+)\Z",
    re.IGNORECASE | re.DOTALL,
)
_TARGET = re.compile(
    r",?\s+(?:in(?:to)?|to|as|expressed in|measured in)\s+(?P<unit>[^\d,()]{1,40})\Z",
    re.IGNORECASE,
)
_ARTICLE = re.compile(r"\b(?:an?|one)\s+(?=[a-zA-Z°])", re.IGNORECASE)


def plain_question(text: str) -> str:
    """The question without mentions, greetings, `what is` and the question mark."""
    text = _CLOSING.sub("", _MENTION.sub("", text.strip()))
    while (shorter := _OPENING.sub("", text)) != text:
        text = shorter
    return text.strip()


def split_target(question: str) -> tuple[str, str | None]:
    """A question and the unit its answer is wanted in, if it names one.

    `how many feet is X` and `X, in feet` both want feet; said twice, the end counts.
    """
    wanted: str | None = None
    turned = _HOW_MANY.match(question)
    if turned and _is_unit(turned["unit"]):
        question, wanted = turned["rest"], turned["unit"]
    ending = _TARGET.search(question)
    if ending and _is_unit(ending["unit"]):
        question, wanted = question[: ending.start()], ending["unit"]
    return question.strip(" ,"), wanted


def without_name(text: str, name: str) -> str:
    """The text without the mention of `name`."""
    return re.sub(rf"\s*@{re.escape(name)}\b\s*[,:]?", " ", text).strip()


def unaddressed(text: str) -> str:
    """`text` without the @ of its mentions, so that repeating it addresses nobody."""
    return re.sub(r"(?<![\w@])@(?=\w)", "", text)


def _is_unit(words: str) -> bool:
    """Whether `words` name a unit, also one like `miles per hour` or `km/h`."""
    parts = re.split(r"\s*/\s*|\s+per\s+", words.strip())
    return all(units.find(part) is not None for part in parts)


def as_calculation(text: str) -> str:
    """A question as an expression: `how many feet are in a mile?` is `1 mile in feet`."""
    question, target = split_target(plain_question(text))
    question = _ARTICLE.sub("1 ", question)
    return question if target is None else f"{question} in {target}"
