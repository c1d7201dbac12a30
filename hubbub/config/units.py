"""Amounts and addresses as written in YAML, and the base class of all sections."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from math import isfinite
from typing import Annotated, NamedTuple
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from hubbub.field_docs import Documented
from hubbub.protocol.thread_ids import ID_PATTERN

__all__ = [
    "GatewayToken",
    "Headers",
    "HostName",
    "Id",
    "ListenAddress",
    "Secret",
    "Section",
    "Size",
    "Span",
    "WebAddress",
    "hidden",
    "parse_address",
    "span",
    "wrong",
]


_SIZES = {"": 1, "B": 1, "KB": 1000, "MB": 1000**2, "KIB": 1024, "MIB": 1024**2, "K": 1024}
_SPANS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_HOST = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_.-]*[a-z0-9_])?|\[[0-9a-f:.]+\])(?::\d{1,5})?")
_VISIBLE = re.compile(r"[!-~]*")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t -~]*")
_AMOUNT = re.compile(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)")
_ADDRESS_FORM = "expected host:port, for example 127.0.0.1:4820"


def wrong(message: str) -> PydanticCustomError:
    """The error for a validator to raise, with this message."""
    # Passed as an argument, because pydantic would format braces in the user's text.
    return PydanticCustomError("value_error", "{message}", {"message": message})


def _size(value: object) -> object:
    """`256KiB` as bytes (or tokens, for `32k`)."""
    if not isinstance(value, str):
        return value
    match = _AMOUNT.fullmatch(value.strip())
    unit = _SIZES.get(match[2].upper()) if match else None
    if match is None or unit is None or not isfinite(size := float(match[1]) * unit):
        raise PydanticCustomError("size", "expected a size: a number of bytes, or 256KiB, 1MB")
    return int(size)


def span(value: object) -> object:
    """`30m` as seconds."""
    if not isinstance(value, str):
        return value
    match = _AMOUNT.fullmatch(value.strip())
    unit = _SPANS.get(match[2]) if match else None
    if match is None or unit is None or not isfinite(span := float(match[1]) * unit):
        raise PydanticCustomError("span", "expected a time: a number of seconds, or 500ms, 10s, 2h")
    return span


def _host_name(value: str) -> str:
    """A host as browsers send it, without scheme and path."""
    host = value.strip().lower()
    if not _HOST.fullmatch(host):
        raise wrong("expected a host such as newsroom.example.org, or host:port")
    return host


def _secret(value: str) -> str:
    """A key or token without the line break that files and variables often end with."""
    secret = value.strip()
    if not _VISIBLE.fullmatch(secret):
        raise hidden("has a space or a letter that no key has: is it a placeholder?")
    return secret


def _gateway_token(value: str) -> str:
    if not 16 <= len(value) <= 512:
        raise hidden("must have 16 to 512 characters")
    return value


def _headers(headers: dict[str, str]) -> dict[str, str]:
    """Headers that HTTP can send; values without white space around them."""
    for name, value in headers.items():
        if not _HEADER_NAME.fullmatch(name):
            raise hidden(f"'{name}' is not a name of a header")
        if not _HEADER_VALUE.fullmatch(value.strip()):
            raise hidden(f"the value of '{name}' has a line break or a letter outside ASCII")
    return {name: value.strip() for name, value in headers.items()}


def hidden(message: str) -> PydanticCustomError:
    """The error for a validator of secrets to raise: the value is not shown."""
    return PydanticCustomError("hidden", "{message}", {"message": message})


def _web_address(value: str) -> str:
    """The address of a server over HTTP."""
    address = value.strip()
    try:
        parts = urlsplit(address)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or any(map(str.isspace, address)):
        raise wrong("expected a URL such as http://127.0.0.1:8000/path")
    return address


def _amount_schema(number: str, units: Iterable[str]) -> WithJsonSchema:
    """The schema for editors: a number, or a number with a unit."""
    names = "|".join(sorted(filter(None, units)))
    text = {"type": "string", "pattern": rf"^\d+(\.\d+)?\s*({names})?$"}
    return WithJsonSchema({"anyOf": [{"type": number, "exclusiveMinimum": 0}, text]})


Size = Annotated[
    int,
    BeforeValidator(_size),
    Field(ge=1),
    _amount_schema("integer", ("B", "KB", "MB", "KiB", "MiB", "k")),
]
"""Bytes: a number, or a string such as 256KiB or 1MB."""
Span = Annotated[float, BeforeValidator(span), Field(gt=0), _amount_schema("number", _SPANS)]
"""Seconds: a number, or a string such as 500ms, 10s, 30m, 2h."""
Id = Annotated[str, Field(pattern=ID_PATTERN)]
HostName = Annotated[str, AfterValidator(_host_name)]
"""A host as in a URL, with its port if it is not the default one."""


Secret = Annotated[str, AfterValidator(_secret)]
"""A key or token, which no message shows."""
GatewayToken = Annotated[
    str,
    AfterValidator(_gateway_token),
    WithJsonSchema({"type": "string", "minLength": 16, "maxLength": 512}),
]
"""The token that gateways share with a network, which no message shows."""
Headers = Annotated[dict[str, str], AfterValidator(_headers)]
"""Headers of HTTP requests. Their values can be secrets."""
WebAddress = Annotated[str, AfterValidator(_web_address)]
"""A URL with http or https."""


class Section(Documented):
    model_config = ConfigDict(
        extra="forbid",
        frozen=True,
    )


class ListenAddress(NamedTuple):
    """The address a hub listens on. Port 0 lets the system choose."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only this machine can reach it."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


def parse_address(text: str) -> ListenAddress:
    """The address in `text`. Raises `ValueError` with a message for the user."""
    host, colon, digits = text.rpartition(":")
    if not colon or not digits.isascii() or not digits.isdecimal() or int(digits[:6]) > 65535:
        raise ValueError(f"'{text}' is not a valid address: {_ADDRESS_FORM}")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if ":" in bare and bare == host:
        raise ValueError(
            f"'{text}' is not a valid address: write an IPv6 host in brackets, [::1]:4820"
        )
    if not bare or any(c.isspace() or c in "/[]" for c in bare):
        raise ValueError(f"'{text}' is not a valid address: {_ADDRESS_FORM}")
    return ListenAddress(bare, int(digits))
