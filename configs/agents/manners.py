"""When the quickstart's agents stay silent, and how they recognise small talk.

Two agents that answer every message never stop, so an agent gets an answer only if it clearly asks
a question.
"""

from __future__ import annotations

import re

from phrasing import without_name

from hubbub import Message
from hubbub.protocol import thread_ids

__all__ = ["WELCOME", "for_others", "is_greeting", "is_question", "is_thanks", "of_another_agent"]

WELCOME = "You are welcome."
_ADDRESSED = re.compile(r"\A(?:\s*@[A-Za-z0-9_-]+[,:]?)+\s*")
_QUESTION = re.compile(
    r"\A(?:please |so |and |ok |okay |now |then |hey |hi |hello )*"
    r"(?:who|what|which|when|where|why|how|whose|whom|is|are|am|was|were|do|does|did|can|could"
    r"|will|would|shall|should|has|have|had|may|might|tell|show|give|explain|list|find|look"
    r"|calculate|compute|convert|search|help)\b",
    re.IGNORECASE,
)
_THANKS = re.compile(
    r"\A(?=\W*\w)(?:ok(?:ay)?|great|nice|cool|perfect|good|many|thanks?|thank you|thx|cheers"
    r"|very much|a lot|so much|all|both|again|everybody|bye|goodbye|\W)+\Z",
    re.IGNORECASE,
)
_GREETING = re.compile(
    r"\A\W*(?:hello|hi|hey|howdy|greetings|good (?:morning|day|afternoon|evening)|moin)\b"
    r"(?:[\s,]+(?:there|all|both|two|three|you|again|everybody|everyone|folks|and|agents|team|world"
    r"|friends)\b)*\W*\Z",
    re.IGNORECASE,
)


def is_question(text: str) -> bool:
    """Whether `text` asks for something, with or without a question mark."""
    plain = _ADDRESSED.sub("", text).strip()
    return plain.endswith("?") or _QUESTION.match(plain) is not None


def is_thanks(text: str) -> bool:
    """Thanks, praise or a goodbye, and nothing else."""
    return _THANKS.match(_ADDRESSED.sub("", text)) is not None


def is_greeting(text: str) -> bool:
    """A greeting and nothing else."""
    return _GREETING.match(_ADDRESSED.sub("", text)) is not None


def for_others(message: Message, me: str) -> bool:
    """Whether the message mentions other participants, but not `me`."""
    return bool(message.mentions) and me not in message.mentions


def of_another_agent(message: Message, me: str) -> bool:
    """Whether this is an agent's message in a group that is not a question to `me`."""
    if message.sender_kind == "human" or len(thread_ids.members_of(message.thread_id)) < 3:
        return False
    return me not in message.mentions or not is_question(without_name(message.text, me))
