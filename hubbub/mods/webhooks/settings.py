"""The settings of the mod `webhooks`, and what is done by them on both ways: how a text is made of
what was sent, and how a body is signed."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from jinja2 import TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import AfterValidator, Field, JsonValue, SecretStr, field_validator, model_validator

from hubbub.config.units import Id, Section, Size, Span, parse_address, wrong
from hubbub.mods.api import ModConfig
from hubbub.mods.fields import named_thread
from hubbub.wording import shortened

__all__ = [
    "ID",
    "MOST_CHARACTERS",
    "SIGNATURE",
    "TIMESTAMP",
    "BadSignature",
    "CannotRender",
    "EndpointConfig",
    "EventName",
    "HookConfig",
    "InboundConfig",
    "WebhooksConfig",
    "rendered",
    "signed",
    "verify",
]

MOST_CHARACTERS = 30_000
"""Of a text; more is cut."""
_BY_ITSELF = "{{ body.text if body.text is string else body | json }}"
_JOINER = "\u2060"
"""Has no width, and ends a name."""


class CannotRender(Exception):
    """The template fails on what was sent. The text says why."""


def _harmless(value: object) -> object:
    return value.replace("@", f"@{_JOINER}") if isinstance(value, str) else value


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


# Mail, chat and logs take text, not HTML: nothing is escaped.
_ENVIRONMENT = ImmutableSandboxedEnvironment(finalize=_harmless, autoescape=False)
_ENVIRONMENT.filters["json"] = _json


def checked(template: str) -> str:
    """The template. Raises what pydantic takes for a mistake of the user."""
    try:
        _ENVIRONMENT.parse(template)
    except TemplateSyntaxError as error:
        raise wrong(f"the template does not parse: line {error.lineno}: {error.message}") from error
    except (MemoryError, RecursionError):
        raise wrong("the template is nested too deeply") from None
    return template


def rendered(template: str | None, given: Mapping[str, JsonValue]) -> str:
    """The text, without blanks at both ends. Raises `CannotRender`."""
    try:
        made = _ENVIRONMENT.from_string(template or _BY_ITSELF).render(given).strip()
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise CannotRender(f"{type(error).__name__}: {error}") from error
    except (MemoryError, RecursionError, AttributeError) as error:
        raise CannotRender(type(error).__name__) from error
    return shortened(made, MOST_CHARACTERS)


EventName = Literal["message", "join", "leave", "turn"]
EVENTS: tuple[EventName, ...] = ("message", "join", "leave", "turn")


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        fine = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        fine = False
    if not fine or any(c.isspace() or not c.isprintable() for c in text):
        raise wrong(f"expected an address such as https://example.org/hook, not {text!r}")
    return text


def _listen(text: str) -> str:
    try:
        parse_address(text)
    except ValueError as error:
        raise wrong(str(error)) from error
    return text


Listen = Annotated[str, AfterValidator(_listen)]
Url = Annotated[str, Field(max_length=2000), AfterValidator(_url)]
Thread = Annotated[str, AfterValidator(named_thread)]
Template = Annotated[str, Field(min_length=1, max_length=10_000), AfterValidator(checked)]
Secret = Annotated[SecretStr, Field(min_length=16)]


class HookConfig(Section):
    name: Id
    """What it is called in answers and notices."""
    url: Url
    """Where events are sent, by POST."""
    secret: Secret
    """What they are signed with, at least 16 characters: `${NAME}` takes it from the environment.
    """
    events: Annotated[tuple[EventName, ...], Field(min_length=1)] = ("message",)
    """What is told: messages, who comes and goes, turns that have ended."""
    threads: tuple[Thread, ...] = ()
    """Only messages and turns in these threads and their reply threads. Empty: in all threads that
    are not direct."""
    direct: bool = False
    """Whether direct messages, and turns in direct threads, are told, too."""
    content: bool = False
    """Whether messages are sent as a whole; else only who, where and when, and their ids."""
    exempt: tuple[Id, ...] = ()
    """Participants whose messages are not told: those of a hook that comes in, for example, lest
    two programs go on for ever."""


class EndpointConfig(Section):
    """Where a program elsewhere sends something to."""

    name: Id
    """The last part of its address: `/hooks/<name>`."""
    secret: Secret
    """What the sender signs with, at least 16 characters."""
    to: Thread
    """The thread in which it is posted."""
    template: Template | None = None
    """Jinja2: makes the text from `body` (the JSON that was sent), `id` and `name`. Nothing is
    posted where it makes nothing. Left out: the body's `text`, or the body as JSON."""
    mentions: tuple[Id, ...] = ()
    """Participants that are mentioned; agents among them wake. What was sent mentions nobody."""
    tolerance: Span = 300.0
    """Seconds that the sender's clock may differ, and a message be under way."""


class InboundConfig(Section):
    """What `hubbub webhooks serve` listens for."""

    listen: Listen = "127.0.0.1:4830"
    """Address and port."""
    sender: Id = "webhook"
    """The participant, a service, in whose name all is posted."""
    endpoints: tuple[EndpointConfig, ...] = ()
    """The addresses that there are."""
    max_size: Size = 256_000
    """Bytes of one body."""
    timeout: Span = 10.0
    """Seconds in which a request must have come as a whole."""
    max_connections: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Connections at once; others are turned away."""

    @field_validator("endpoints")
    @classmethod
    def _one_each(cls, endpoints: tuple[EndpointConfig, ...]) -> tuple[EndpointConfig, ...]:
        _check_names([each.name for each in endpoints])
        return endpoints


class WebhooksConfig(ModConfig):
    hooks: tuple[HookConfig, ...] = ()
    """Who is told."""
    timeout: Span = 10.0
    """Seconds in which a receiver must have answered."""
    attempts: Annotated[int, Field(ge=1, le=100)] = 12
    """How often an event is sent at most; then it is given up, and owners are told."""
    first_retry: Span = 5.0
    """Seconds until the second attempt; each time twice as many."""
    longest_retry: Span = 3600.0
    """Seconds between two attempts at most."""
    most_waiting: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """Events that may wait for one receiver; beyond it the oldest are dropped, and owners are told.
    """
    kept: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Events of each hook that are remembered after they were sent or given up."""
    inbound: InboundConfig = InboundConfig()
    """What comes in: for a process of its own, `hubbub webhooks serve`."""

    @model_validator(mode="after")
    def _different(self) -> Self:
        _check_names([hook.name for hook in self.hooks])
        return self


def _check_names(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise wrong(f"{name!r} is there twice: names must differ")


# Signatures -------------------------------------------------------------------------------------


ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_VERSION = "v1,"
_ENCODED = "whsec_"
"""Before a secret that is base64, as the specification writes them; others are taken as they
are."""
_LONGEST_ID = 256


class BadSignature(Exception):
    """The signature does not prove that the body is who it says it is from, or not now."""


def _key(secret: str) -> bytes:
    if secret.startswith(_ENCODED):
        try:
            return base64.b64decode(secret.removeprefix(_ENCODED), validate=True)
        except binascii.Error:
            pass  # a secret that only begins like one
    return secret.encode()


def _signature(secret: str, id: str, timestamp: str, body: bytes) -> str:
    signed = b".".join((id.encode(), timestamp.encode(), body))
    digest = hmac.new(_key(secret), signed, hashlib.sha256).digest()
    return _VERSION + base64.b64encode(digest).decode()


def signed(secret: str, id: str, now: float, body: bytes) -> dict[str, str]:
    """The headers that prove a body."""
    timestamp = str(int(now))
    return {ID: id, TIMESTAMP: timestamp, SIGNATURE: _signature(secret, id, timestamp, body)}


def verify(
    secret: str, headers: Mapping[str, str], body: bytes, now: float, tolerance: float
) -> str:
    """The id of an event whose signature is right, and at most `tolerance` seconds away from now.
    Names of headers are in lower case. Raises `BadSignature`, with a sentence for the sender."""
    id, timestamp = headers.get(ID, ""), headers.get(TIMESTAMP, "")
    given = headers.get(SIGNATURE, "").split()
    if not (id and timestamp and given):
        raise BadSignature(f"the headers {ID}, {TIMESTAMP} and {SIGNATURE} are needed")
    # With a full stop in the id, the same signature would prove another id, time and body.
    if "." in id or len(id) > _LONGEST_ID or not (timestamp.isascii() and timestamp.isdecimal()):
        raise BadSignature(f"{ID} or {TIMESTAMP} is not as it should be")
    right = _signature(secret, id, timestamp, body).encode()
    if not any(hmac.compare_digest(right, each.encode()) for each in given):
        raise BadSignature("the signature is wrong")
    if len(timestamp) > 15 or abs(int(timestamp) - now) > tolerance:
        raise BadSignature(f"{TIMESTAMP} is more than {tolerance:g} s away from now")
    return id
