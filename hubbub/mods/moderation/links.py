"""Links in a text, and the domains that they lead to, whatever they are disguised as."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Collection, Iterator
from typing import Annotated
from urllib.parse import unquote

from pydantic import AfterValidator

from hubbub.config.units import wrong
from hubbub.mods.moderation.folding import Form, Span, plain

__all__ = ["Domain", "domain_of", "host_of", "is_within", "links"]

_ENDINGS = (
    "com|net|org|info|biz|io|ai|dev|app|co|me|tv|xyz|top|site|online|shop|club|link|click|live|ru|"
    "cn|de|uk|fr|nl|pl|in|br|eu|us|ch|at|to|gg|ly|edu|gov"
)
"""After which a name without `https://` is taken for a link."""
_STOP = r"\s<>\"'`|^(){}\[\]"
_LINK = re.compile(
    rf"""
      https?:[^{_STOP}]+                                   # also https:name, https:\\name
    | [a-z][a-z0-9+.-]{{0,30}}:[/\\]{{1,3}}[^{_STOP}]+
    | (?<![\w:/\\.@-])[/\\]{{2}}[^{_STOP}/\\.]+\.[^{_STOP}]+  # //name.org, as in a page
    | (?<![\w@./\\-])www\.[^{_STOP}]+
    | (?<![\w@./\\-])(?:[\w-]{{1,63}}[.。．｡]){{1,8}}(?:{_ENDINGS})(?![\w-])(?:[:/?\#][^{_STOP}]*)?
    """,
    re.VERBOSE,
)
_SCHEME = re.compile(r"https?:|[a-z][a-z0-9+.-]{0,30}:(?=[/\\])")
_NO_HOST = re.compile(r"[\s/?#\\@:<>^|%]")
_DOTS = str.maketrans("。．｡", "...")
_AT_THE_END = ".,;:!?*_~"
"""What ends a sentence rather than a link."""


def links(form: Form) -> Iterator[tuple[Span, str]]:
    """Each link of a caseless text: where it stands in the original, and its host."""
    for match in _LINK.finditer(form.text):
        text = match[0].rstrip(_AT_THE_END)
        yield form.span(match.start(), match.start() + len(text)), host_of(text)


def host_of(link: str) -> str:
    """The host that a browser would go to, in lower case, IDNA and without port; empty for one that
    cannot be read."""
    rest = link[match.end() :] if (match := _SCHEME.match(link)) else link
    authority = re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0]
    host = unquote(authority.rpartition("@")[2])
    if host.startswith("["):
        return _address(host[1:].partition("]")[0])
    return domain_of(host.partition(":")[0])


def domain_of(host: str) -> str:
    """The one form of a host; empty for none."""
    # Letters of other scripts stay what they are: another letter is another host.
    text = plain(host).text.translate(_DOTS).casefold().rstrip(".")
    if _NO_HOST.search(text):
        return ""
    try:
        # What browsers take for addresses: 127.1, 0x7f000001, 2130706433.
        return socket.inet_ntoa(socket.inet_aton(text))
    except (OSError, ValueError):
        pass
    try:
        return text.encode("idna").decode("ascii").lower()
    except UnicodeError:
        return ""


def _address(text: str) -> str:
    try:
        return ipaddress.ip_address(text).compressed
    except ValueError:
        return ""


def _domain(text: str) -> str:
    domain = domain_of(text.removeprefix("*."))
    if not domain:
        raise wrong(f"expected a domain such as example.org, not {text!r}")
    return domain


Domain = Annotated[str, AfterValidator(_domain)]


def is_within(host: str, domains: Collection[str]) -> bool:
    """Whether the host is one of these domains, or a part of one."""
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)
