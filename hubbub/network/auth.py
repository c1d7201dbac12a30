"""Who may be whom: tokens as SHA-256, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Iterable
from itertools import islice

__all__ = ["LONGEST_S", "WrongTokens", "new_token", "proves", "token_hash"]

AT_ONCE = 5
"""Wrong tokens of one address that are answered without delay."""
EACH_S = 1.0
"""Seconds that every further one is answered later than the one before it."""
LONGEST_S = 5.0
"""What would wait longer is answered at once: come back later."""


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


class WrongTokens:
    """How long the answers to wrong tokens wait, by the address that they come from.

    Only wrong tokens count and wait. They are no way to guess one of 256 bits, however many there
    are; a right one is let in at once, so nobody can lock out others behind the same proxy.
    """

    def __init__(self) -> None:
        self._paid_off: dict[str, float] = {}
        """When an address has waited for all its wrong tokens; the longest untouched first."""

    def wait(self, address: str, now: float) -> float:
        """One more wrong token from `address`: the seconds that its answer has to wait.

        More than `LONGEST_S` does not count; then the answer is to come back after that.
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
    """Whose address it is: of IPv6, one customer has a whole network."""
    if ":" not in address:
        return address
    return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
