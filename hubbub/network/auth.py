"""Authentication: tokens as SHA-256, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Iterable
from itertools import islice

__all__ = ["LONGEST_S", "WrongTokens", "new_token", "proves", "token_hash"]

AT_ONCE = 5
"""Wrong tokens per address that are answered without delay."""
EACH_S = 1.0
"""Additional delay in seconds for each further one."""
LONGEST_S = 5.0
"""The longest delay; beyond it the answer is an immediate "try again later"."""


def new_token() -> str:
    """A new token: 256 random bits, recognisable in a log by its prefix."""
    return "hub_" + secrets.token_urlsafe(32)


def token_hash(token: str) -> str:
    """The stored form of a token. As it has 256 random bits, a plain SHA-256 (hex) is enough."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def proves(token: str | None, hashes: Iterable[str]) -> bool:
    """Whether the hash of `token` is among `hashes`. Every hash is compared."""
    digest = token_hash(token or "")
    matches = False
    for stored in hashes:
        matches |= hmac.compare_digest(digest, stored)
    return matches and token is not None


class WrongTokens:
    """Delays for the answers to wrong tokens, by client address.

    Only wrong tokens count and are delayed. A valid token is accepted at once, so that no one can
    lock out others behind the same proxy; 256 bits cannot be guessed at any rate.
    """

    def __init__(self) -> None:
        self._paid_off: dict[str, float] = {}
        """When each address has waited for all its wrong tokens, least recently used first."""

    def wait(self, address: str, now: float) -> float:
        """Count a wrong token from `address`; returns the seconds to delay its answer.

        Above `LONGEST_S` it is not counted, and the answer asks the client to try again after that.
        """
        source = _source(address)
        for old in list(islice(self._paid_off, 2)):
            if self._paid_off[old] <= now:
                del self._paid_off[old]
        paid_off = max(self._paid_off.pop(source, now), now) + EACH_S
        wait = max(0.0, paid_off - now - AT_ONCE * EACH_S)
        self._paid_off[source] = paid_off if wait <= LONGEST_S else paid_off - EACH_S
        return wait


def _source(address: str) -> str:
    """The address to count by; for IPv6 the /64 network, as one customer has all of it."""
    if ":" not in address:
        return address
    return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
