"""The settings of the mod `webhooks`, and the code shared by both directions: templates and
signatures."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Annotated, Literal, Self
from urllib.parse import urlsplit

from jinja2 import TemplateError, TemplateSyntaxError, Undefined
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import AfterValidator, Field, JsonValue, SecretStr, field_validator, model_validator

from hubbub.config.units import Id, Section, Size, Span, hidden, parse_address, wrong
from hubbub.mods.api import ModConfig
from hubbub.mods.fields import named_thread
from hubbub.wording import shortened

__all__ = [
    "ID",
    "MAX_CHARACTERS",
    "SIGNATURE",
    "TIMESTAMP",
    "BadSignature",
    "CannotRender",
    "EndpointConfig",
    "EventName",
    "HookConfig",
    "InboundConfig",
    "WebhooksConfig",
    "render",
    "sign",
    "verify",
]

MAX_CHARACTERS = 30_000
"""Maximum length of a rendered text, which is then truncated."""
_DEFAULT_TEMPLATE = "{{ body.text if body.text is string else body | json }}"
_JOINER = "\u2060"
"""Has no width, and keeps `@` from starting a mention."""


class CannotRender(Exception):
    """The template fails on the request, for the reason in the text."""


def _without_mentions(value: object) -> object:
    return value.replace("@", f"@{_JOINER}") if isinstance(value, str) else value


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


class _Missing(Undefined):
    """A missing field: false in conditions, an error as text."""

    __str__ = Undefined._fail_with_undefined_error


# Mail, chat and logs take plain text, so nothing is escaped as HTML.
_ENVIRONMENT = ImmutableSandboxedEnvironment(
    finalize=_without_mentions, autoescape=False, undefined=_Missing
)
_ENVIRONMENT.filters["json"] = _json


def check_template(template: str) -> str:
    """The template. Raises a pydantic validation error."""
    try:
        _ENVIRONMENT.parse(template)
    except TemplateSyntaxError as error:
        raise wrong(f"the template does not parse: line {error.lineno}: {error.message}") from error
    except (MemoryError, RecursionError):
        raise wrong("the template is nested too deeply") from None
    return template


def render(template: str | None, variables: Mapping[str, JsonValue]) -> str:
    """The rendered text, without surrounding whitespace. Raises `CannotRender`."""
    try:
        text = _ENVIRONMENT.from_string(template or _DEFAULT_TEMPLATE).render(variables).strip()
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise CannotRender(f"{type(error).__name__}: {error}") from error
    except (MemoryError, RecursionError, AttributeError) as error:
        raise CannotRender(type(error).__name__) from error
    return shortened(text, MAX_CHARACTERS)


EventName = Literal["message", "join", "leave", "turn"]
EVENTS: tuple[EventName, ...] = ("message", "join", "leave", "turn")


def _url(text: str) -> str:
    try:
        parts = urlsplit(text)
        valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
    if not valid or any(c.isspace() or not c.isprintable() for c in text):
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
Template = Annotated[str, Field(min_length=1, max_length=10_000), AfterValidator(check_template)]


def _long_enough(secret: SecretStr) -> SecretStr:
    if len(secret.get_secret_value()) < 16:
        raise hidden("must have at least 16 characters")
    return secret


Secret = Annotated[SecretStr, AfterValidator(_long_enough)]


class HookConfig(Section):
    name: Id
    """Name of the webhook in answers and notices."""
    url: Url
    """Address to which events are sent by POST."""
    secret: Secret
    """Key to sign events with, at least 16 characters. `${NAME}` reads it from the environment."""
    events: Annotated[tuple[EventName, ...], Field(min_length=1)] = ("message",)
    """Events to send: messages, joins and leaves of participants, ended turns."""
    threads: tuple[Thread, ...] = ()
    """Only messages and turns in these threads and their reply threads. Default: in all threads
    except direct ones."""
    direct: bool = False
    """Whether to include direct messages and turns in direct threads."""
    content: bool = False
    """Whether to send complete messages. If not, only ids, participants, thread and time."""
    exempt: tuple[Id, ...] = ()
    """Participants whose messages are not sent, for example the sender of an inbound webhook, to
    avoid an endless loop between two programs."""


class EndpointConfig(Section):
    """An address to which another program sends requests."""

    name: Id
    """Last part of the path: `/hooks/<name>`."""
    secret: Secret
    """Key that the sender signs with, at least 16 characters."""
    to: Thread
    """Thread to post in."""
    template: Template | None = None
    """Jinja2 template for the text, with the variables `body` (the JSON of the request), `id` and
    `name`. If it renders to nothing, nothing is posted. Default: the body's `text`, or else the
    body as JSON."""
    mentions: tuple[Id, ...] = ()
    """Participants to mention, which wakes agents. The content of the request mentions no one."""
    tolerance: Span = 300.0
    """Maximum age of a request in seconds, including the difference of clocks."""


class InboundConfig(Section):
    """Settings of `hubbub webhooks serve`."""

    listen: Listen = "127.0.0.1:4830"
    """Address and port to listen on."""
    sender: Id = "webhook"
    """The participant, a service, that posts the messages."""
    endpoints: tuple[EndpointConfig, ...] = ()
    """The addresses to serve."""
    max_size: Size = 256_000
    """Maximum size of a request body in bytes."""
    timeout: Span = 10.0
    """Seconds in which a request must be complete."""
    max_connections: Annotated[int, Field(ge=1, le=10_000)] = 64
    """Maximum number of concurrent connections. Further ones are refused."""

    @field_validator("endpoints")
    @classmethod
    def _one_each(cls, endpoints: tuple[EndpointConfig, ...]) -> tuple[EndpointConfig, ...]:
        _check_names([each.name for each in endpoints])
        return endpoints


class WebhooksConfig(ModConfig):
    hooks: tuple[HookConfig, ...] = ()
    """The receivers of events."""
    timeout: Span = 10.0
    """Seconds in which a receiver must answer."""
    attempts: Annotated[int, Field(ge=1, le=100)] = 12
    """Maximum attempts to send an event. Then it is given up, and owners get a notice."""
    first_retry: Span = 5.0
    """Seconds before the second attempt. The delay doubles each time."""
    longest_retry: Span = 3600.0
    """Maximum seconds between two attempts."""
    most_waiting: Annotated[int, Field(ge=1, le=1_000_000)] = 10_000
    """Maximum number of waiting events per receiver. Beyond it, the oldest are dropped, and owners
    get a notice."""
    kept: Annotated[int, Field(ge=1, le=100_000)] = 1000
    """Number of sent or given up events stored per webhook."""
    inbound: InboundConfig = InboundConfig()
    """Inbound webhooks, served by a separate process, `hubbub webhooks serve`."""

    @model_validator(mode="after")
    def _different(self) -> Self:
        _check_names([hook.name for hook in self.hooks])
        return self


def _check_names(names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise wrong(f"{name!r} is listed twice; names must be unique")


# Signatures -------------------------------------------------------------------------------------


ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_VERSION = "v1,"
_ENCODED = "whsec_"
"""Prefix of a secret in base64, as in the specification. Other secrets are used as they are."""
_LONGEST_ID = 256


class BadSignature(Exception):
    """The signature is missing, wrong or expired."""


def _key(secret: str) -> bytes:
    if secret.startswith(_ENCODED):
        try:
            return base64.b64decode(secret.removeprefix(_ENCODED), validate=True)
        except binascii.Error:
            pass  # a plain secret with the same prefix
    return secret.encode()


def _signature(secret: str, id: str, timestamp: str, body: bytes) -> str:
    content = b".".join((id.encode(), timestamp.encode(), body))
    digest = hmac.new(_key(secret), content, hashlib.sha256).digest()
    return _VERSION + base64.b64encode(digest).decode()


def sign(secret: str, id: str, now: float, body: bytes) -> dict[str, str]:
    """The headers that sign a body."""
    timestamp = str(int(now))
    return {ID: id, TIMESTAMP: timestamp, SIGNATURE: _signature(secret, id, timestamp, body)}


def verify(
    secret: str, headers: Mapping[str, str], body: bytes, now: float, tolerance: float
) -> str:
    """The id of an event whose signature is valid and whose time differs from `now` by at most
    `tolerance` seconds. Header names are in lower case. Raises `BadSignature`, with a message for
    the sender."""
    id, timestamp = headers.get(ID, ""), headers.get(TIMESTAMP, "")
    given = headers.get(SIGNATURE, "").split()
    if not (id and timestamp and given):
        raise BadSignature(f"the headers {ID}, {TIMESTAMP} and {SIGNATURE} are required")
    # With a period in the id, the same signature would be valid for another id, time and body.
    if "." in id or len(id) > _LONGEST_ID or not (timestamp.isascii() and timestamp.isdecimal()):
        raise BadSignature(f"{ID} or {TIMESTAMP} is malformed")
    expected = _signature(secret, id, timestamp, body).encode()
    if not any(hmac.compare_digest(expected, each.encode()) for each in given):
        raise BadSignature("the signature is wrong")
    if len(timestamp) > 15 or abs(int(timestamp) - now) > tolerance:
        raise BadSignature(f"{TIMESTAMP} is more than {tolerance:g} s off the current time")
    return id
