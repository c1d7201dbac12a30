"""Listen addresses: `host:port`, `[v6]:port`."""

from __future__ import annotations

import ipaddress
from typing import NamedTuple

__all__ = ["Address", "parse_address"]


class Address(NamedTuple):
    """Where a hub listens. Port 0 lets the system choose one."""

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


def parse_address(text: str) -> Address:
    """The address in `text`. Raises ValueError with the sentence for the user."""
    host, colon, digits = text.rpartition(":")
    if not colon or not digits.isascii() or not digits.isdecimal() or int(digits) > 65535:
        raise ValueError(f"'{text}' is no address: expected host:port, for example 127.0.0.1:4820")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    if ":" in bare and bare == host:
        raise ValueError(f"'{text}' is no address: write an IPv6 host in brackets, [::1]:4820")
    if not bare or any(c.isspace() or c in "/[]" for c in bare):
        raise ValueError(f"'{text}' is no address: expected host:port, for example 127.0.0.1:4820")
    return Address(bare, int(digits))
