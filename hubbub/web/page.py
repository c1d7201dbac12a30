"""The page at `/join`: how to join by other ways than the page. It needs no script."""

from __future__ import annotations

from html import escape
from importlib.resources import files
from string import Template

__all__ = ["joining_page"]

_DEFAULT = "ws://127.0.0.1:4820"


def joining_page(network: str, url: str, *, tokens: bool) -> bytes:
    """HTML for the network at `url` (ws://host:port); `tokens`: whether one is needed to join."""
    address = url.removeprefix("ws://")
    page = Template(files("hubbub.web").joinpath("join.html").read_text(encoding="utf-8"))
    return page.substitute(
        name=escape(network),
        url=escape(url),
        option="" if url == _DEFAULT else f" --address {escape(address)}",
        as_whom=" --as ann" if tokens else "",
        secret="HUBBUB_TOKEN=… " if tokens else "",
        token=', "token": "…"' if tokens else "",
    ).encode()
