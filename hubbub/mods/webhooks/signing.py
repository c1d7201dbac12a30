"""Signatures of webhooks, after the specification "Standard Webhooks".

webhook-id          of the event; the same each time it is sent
webhook-timestamp   seconds since the epoch
webhook-signature   v1,<base64 of HMAC-SHA256 over "id.timestamp.body">; several, by spaces
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping

__all__ = ["ID", "SIGNATURE", "TIMESTAMP", "Forged", "signed", "verify"]

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
_VERSION = "v1,"
_ENCODED = "whsec_"
"""Before a secret that is base64, as the specification writes them; others are taken as they
are."""
_LONGEST_ID = 256


class Forged(Exception):
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
    Names of headers are in lower case. Raises `Forged`, with a sentence for the sender."""
    id, timestamp = headers.get(ID, ""), headers.get(TIMESTAMP, "")
    given = headers.get(SIGNATURE, "").split()
    if not (id and timestamp and given):
        raise Forged(f"the headers {ID}, {TIMESTAMP} and {SIGNATURE} are needed")
    # With a full stop in the id, the same signature would prove another id, time and body.
    if "." in id or len(id) > _LONGEST_ID or not (timestamp.isascii() and timestamp.isdecimal()):
        raise Forged(f"{ID} or {TIMESTAMP} is not as it should be")
    right = _signature(secret, id, timestamp, body).encode()
    if not any(hmac.compare_digest(right, each.encode()) for each in given):
        raise Forged("the signature is wrong")
    if len(timestamp) > 15 or abs(int(timestamp) - now) > tolerance:
        raise Forged(f"{TIMESTAMP} is more than {tolerance:g} s away from now")
    return id
