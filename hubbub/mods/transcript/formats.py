"""Transcript formats: JSON lines, Markdown and HTML."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from html import escape
from typing import Annotated, Any, Protocol

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from hubbub.ids import message_id, parse_interaction_id
from hubbub.mods.operation import bad_request
from hubbub.protocol import thread_ids
from hubbub.protocol.frame_errors import FrameError, check_values
from hubbub.protocol.messages import Message
from hubbub.strict_json import STRICT

__all__ = [
    "VERSION",
    "Header",
    "Html",
    "Markdown",
    "TranscriptFormat",
    "line_of",
    "read_header",
    "read_line",
]

VERSION = 1
MAX_DEPTH = 32
"""Maximum nesting of objects and lists."""
MAX_CHARACTERS = 1_000_000
"""Maximum length of a line."""
_DERIVED: Mapping[str, Any] = {"amended": True, "attachments": {"__all__": {"gone"}}}
"""Fields that are not in the log but derived for display. Any: pydantic's tree of names."""

_ENDS = {ord(end): f"\\u{ord(end):04x}" for end in "\x7f\x85\u2028\u2029"}
"""Characters that some programs treat as line ends. They are escaped, as JSON allows."""


class Header(BaseModel):
    """The first line of a transcript."""

    model_config = ConfigDict(frozen=True, extra="ignore", strict=True)

    transcript: Annotated[int, Field(ge=1)]
    network: Annotated[str, Field(pattern=thread_ids.ID_PATTERN)]
    epoch: Annotated[str, Field(pattern=r"^[0-9A-Z]{26}$")]
    """The incarnation of the log, within which message ids are unique."""


def line_of(message: Message) -> str:
    """The message as a line, without the newline."""
    return message.model_dump_json(exclude_defaults=True, exclude=dict(_DERIVED)).translate(_ENDS)


def read_header(text: str) -> Header:
    """Raises `OperationError` for a line that is not the header of a transcript."""
    try:
        header = Header.model_validate_json(text)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"{part}: " for part in first["loc"])
        raise bad_request(
            "line 1: a transcript starts with a line such as "
            f'{{"transcript":{VERSION},"network":…,"epoch":…}}: {place}{first["msg"]}'
        ) from None
    if header.transcript > VERSION:
        raise bad_request(
            "line 1: transcript: a newer version of Hubbub wrote this "
            f"(format {header.transcript}); this one imports format {VERSION}"
        )
    return header


def read_line(text: str) -> Message:
    """The message of a line. Raises `ValueError` with the problem."""
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"has {len(text)} characters; the limit is {MAX_CHARACTERS}")
    try:
        value = json.loads(text, **STRICT)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    except ValueError as error:
        raise ValueError(f"is not JSON: {error}") from None
    try:
        check_values(value, MAX_DEPTH)
        message = Message.model_validate_json(text)
    except FrameError as error:
        raise ValueError(error.message) from None
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = "".join(f"{part}: " for part in first["loc"][:1])
        raise ValueError(f"{place}{first['msg'][0].lower()}{first['msg'][1:]}") from None
    _check_message(message)
    return message


def _check_message(message: Message) -> None:
    """Raises `ValueError` for a message that cannot exist in a network."""
    for problem in _problems(message):
        raise ValueError(problem)


def _problems(message: Message) -> Iterator[str]:
    thread = message.thread_id
    if message.seq < 1 or message.id != message_id(message.seq):
        yield f"id: {message.id[:64]!r} is not the message at {message.seq}"
    elif thread_ids.canonical(thread, "") != thread:
        yield f"thread_id: {thread[:200]!r} is not a thread"
    elif message.type != thread_ids.kind_of(thread):
        yield f"type: {thread} cannot have {message.type} messages"
    elif (message.sender_kind == "system") != (message.sender_id == "hub"):
        yield "sender_id: only the hub has the kind `system`"
    elif not all(map(_is_name, _names(message))):
        yield "sender_id: this and all mentions must be ids of participants"
    elif parse_interaction_id(message.interaction_id) is None:
        yield f"interaction_id: {message.interaction_id[:64]!r} is not valid"
    elif not 0 <= message.hop <= 1_000_000:
        yield f"hop: {message.hop} is not valid"
    elif not 1970 <= message.sent_at.year <= 9000:
        yield f"sent_at: {message.sent_at.isoformat()} is out of range"
    elif message.type == "direct" and message.sender_id not in _members(thread):
        yield f"sender_id: {message.sender_id} is not a member of {thread}"


def _members(thread: str) -> tuple[str, ...]:
    return (*thread_ids.members_of(thread), "hub")


def _names(message: Message) -> Iterator[str]:
    yield message.sender_id
    yield from message.mentions
    yield from (name for name in (message.sent_by, message.timer_of) if name is not None)


def _is_name(name: str) -> bool:
    return thread_ids.is_participant_id(name) or name in ("hub", "operator")


_TICKS = re.compile(r"`+")

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; max-width: 48rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c1c1e; background: #fff; }
h1 { font-size: 1.3rem; }
article { border-top: 1px solid #d8d8dc; padding: .75rem 0; }
header { color: #55555a; font-size: .85rem; }
header b { color: #1c1c1e; font-size: 1rem; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: inherit; margin: .25rem 0 0;
  unicode-bidi: isolate; }
blockquote { margin: .25rem 0; padding-left: .75rem; border-left: 3px solid #d8d8dc; }
ul { margin: .25rem 0 0; font-size: .85rem; }
@media (prefers-color-scheme: dark) {
  body { color: #e8e8ea; background: #1c1c1e; }
  header { color: #a0a0a6; }
  header b { color: #e8e8ea; }
  article, blockquote { border-color: #3a3a3e; }
}
"""


class TranscriptFormat(Protocol):
    """Writes a transcript."""

    def head(self, title: str) -> str: ...

    def message(self, message: Message) -> str: ...

    def foot(self) -> str: ...


class Markdown:
    def head(self, title: str) -> str:
        return f"# {title}\n"

    def message(self, message: Message) -> str:
        facts = " · ".join(f"`{fact}`" for fact in _facts(message))
        parts = [f"\n---\n\n**`{message.sender_id}`** {facts}\n"]
        if message.quote is not None and message.quote.text:
            parts.append(_fenced("quote", message.quote.text))
        parts.append(_fenced("text", _text(message)))
        if message.attachments:
            names = "\n".join(_shown_attachments(message))
            parts.append(_fenced("attachments", names))
        return "\n".join(parts)

    def foot(self) -> str:
        return ""


def _fenced(kind: str, text: str) -> str:
    """A fenced block that the text cannot close."""
    longest = max((len(run) for run in _TICKS.findall(text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{kind}\n{text}\n{fence}\n"


class Html:
    def head(self, title: str) -> str:
        escaped = escape(title)
        return (
            '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
            '<meta http-equiv="Content-Security-Policy" '
            "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
            '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
            f"<title>{escaped}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{escaped}</h1>\n"
        )

    def message(self, message: Message) -> str:
        facts = " · ".join(escape(fact) for fact in _facts(message))
        parts = [f'<article id="{escape(message.id)}">']
        parts.append(f"<header><b>{escape(message.sender_id)}</b> {facts}</header>")
        if message.quote is not None and message.quote.text:
            parts.append(f"<blockquote><pre>{_escaped(message.quote.text)}</pre></blockquote>")
        parts.append(f"<pre>{_escaped(_text(message))}</pre>")
        if message.attachments:
            items = "".join(f"<li>{_escaped(each)}</li>" for each in _shown_attachments(message))
            parts.append(f"<ul>{items}</ul>")
        return "\n".join([*parts, "</article>\n"])

    def foot(self) -> str:
        return "</body>\n</html>\n"


def _escaped(text: str) -> str:
    """Text in HTML. A leading newline is doubled, because HTML drops the one after <pre>."""
    return ("\n" if text.startswith("\n") else "") + escape(text)


def _facts(message: Message) -> list[str]:
    """Metadata of the message, without markup."""
    facts = [message.sender_kind, f"{message.sent_at:%Y-%m-%d %H:%M:%S} UTC", message.id]
    facts.append(message.thread_id)
    if message.sent_by is not None:
        facts.append(f"sent by {message.sent_by}")
    if message.reply_to is not None:
        facts.append(f"reply to {message.reply_to}")
    if message.amends is not None:
        facts.append(f"{message.amends.kind} {message.amends.message_id}")
    elif message.amended is not None:
        facts.append(message.amended)
    if message.imported:
        facts.append("imported")
    elif message.untrusted:
        facts.append("untrusted")
    return facts


def _text(message: Message) -> str:
    if message.amended == "deleted" or (message.amends and message.amends.kind == "deleted"):
        return "(deleted)"
    return message.text


def _shown_attachments(message: Message) -> list[str]:
    return [
        f"{each.name} ({each.media_type}{f', {each.size} bytes' if each.size else ''}) {each.uri}"
        for each in message.attachments
    ]
