"""Who may be whom: tokens as SHA-256, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Iterable

__all__ = ["is_loopback", "new_token", "proves", "token_hash"]


def new_token() -> str:
    """A fresh token: 256 random bits, recognisable in a log by its prefix."""
    return "hub_" + secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """What is stored of a token. It has 256 random bits, so a plain SHA-256 (hex) is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def proves(token: str | None, hashes: Iterable[str]) -> bool:
    """Whether `token` is one of those whose hashes are given. Every hash is compared."""
    mine = token_hash(token or "")
    found = False
    for known in hashes:
        found |= hmac.compare_digest(mine, known)
    return found and token is not None


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach `host`."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False
