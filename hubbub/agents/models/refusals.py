"""Whether an endpoint says that it takes no tools: then a model is spoken to in words. Pure.

It must say so of tools in general, and before it speaks of messages: what it says of those is a
mistake in one request, and may repeat what people wrote.
"""

from __future__ import annotations

import re

from pydantic import JsonValue

__all__ = ["complaint", "refuses_tools"]

_TOOLS = (
    r"\b(?:tools(?!\[|\.\d)|tool_choice|tool[ -](?:use|calls?|calling|choices?)"
    r"|function[ -]?call(?:s|ing)?)\b"
)
_NOT = (
    r"(?:\bnot |n't |\bno |\bun)(?:\w{1,12} )?"
    r"(?:support|recogni[sz]e|permitted|allow|available|enable|implement|expected|known)\w{0,8}"
)
_BETWEEN = (
    r"(?:\W{1,3}(?:the|any|use|of|for|in|native|request|arguments?|param(?:eter)?s?|supplied"
    r"|fields?|inputs?|keys?|s|object|names?|property)\b){0,5}\W{1,4}"
)
_REFUSED = re.compile(
    rf"{_NOT}{_BETWEEN}{_TOOLS}"
    rf"|{_TOOLS}[^.;\n]{{0,40}}?(?:{_NOT}|\b(?:is|are) disabled|\brequires\b|\bextra fields)"
    rf"|\bno endpoints\b[^.;\n]{{0,30}}{_TOOLS}"
    rf"|\binvalid (?:param|value|argument)[^.;\n]{{0,30}}{_TOOLS}"
    r"|'(?:tools|tool_choice)'\W{1,6}msg\W{1,6}extra (?:input|field|param)",
    re.IGNORECASE,
)
_OF_MESSAGES = re.compile(r"\bmessages\b|\brole\b|tool_call_id|\btool_calls\b", re.IGNORECASE)
_MOST = 2000


def complaint(body: object, otherwise: str) -> str:
    """What the endpoint says is wrong: a text in the body of its error, if there is one."""
    if isinstance(body, dict):
        fields: dict[str, JsonValue] = body
        told = next((fields[key] for key in ("message", "detail") if fields.get(key)), None)
        return otherwise if told is None else str(told)
    return body if isinstance(body, str) else otherwise


def refuses_tools(told: str) -> bool:
    """Whether the words are a refusal of tools, or of their being required."""
    told = told[:_MOST]
    found = _REFUSED.search(told)
    return found is not None and _OF_MESSAGES.search(told, 0, found.start()) is None
