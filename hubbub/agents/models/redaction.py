"""What is secret about an endpoint, kept out of what is told of it. Pure."""

from __future__ import annotations

import re
from base64 import b64encode
from urllib.parse import unquote, urlsplit

__all__ = ["Redaction"]

_HIDDEN = "***"
_SHORT = 8
"""Characters: what is shorter may be part of a word and is hidden only where it stands alone."""


class Redaction:
    """Hides the key and what stands in the address to log in with, wherever a text repeats it."""

    def __init__(self, base_url: str, api_key: str | None):
        parts = urlsplit(base_url)
        user, _, host = parts.netloc.rpartition("@")
        asked = "?***" if parts.query else ""
        self.address = f"{parts.scheme}://{_HIDDEN + '@' if user else ''}{host}{parts.path}{asked}"
        """The address as it may be told."""
        secrets = {api_key or "", parts.query, *re.split("[&=]", parts.query)}
        if user:
            _, _, password = user.partition(":")
            secrets |= {user, unquote(user), password, unquote(password), _basic(user)}
        told = sorted(filter(None, secrets), key=len, reverse=True)
        self._secret = re.compile("|".join(map(_pattern, told)) or r"(?!)")

    def __call__(self, text: str) -> str:
        return self._secret.sub(_HIDDEN, text)


def _basic(user: str) -> str:
    """As it stands in the header of a request."""
    return b64encode(unquote(user).encode()).decode()


def _pattern(secret: str) -> str:
    found = re.escape(secret)
    return found if len(secret) >= _SHORT else rf"(?<!\w){found}(?!\w)"
