"""Texts for rules: normalized forms, user-defined regular expressions, and links."""

from __future__ import annotations

import ipaddress
import re
import socket
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from time import monotonic
from typing import Annotated
from urllib.parse import unquote

import regex
from pydantic import AfterValidator, Field

from hubbub.config.units import wrong

__all__ = [
    "Domain",
    "NormalizedText",
    "Pattern",
    "SearchTimeout",
    "TextSpan",
    "caseless",
    "compile_pattern",
    "find_spans",
    "folded",
    "host_of",
    "is_within",
    "links",
    "merge_spans",
    "plain",
    "replace_spans",
]

TextSpan = tuple[int, int]
"""A range of the original text: start, and end (exclusive)."""

_STACKED = re.compile(
    "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f]"
)
"""Marks that can be added to any letter. Marks of a script, such as vowels of Hindi, are kept."""
_UNSEEN = regex.compile(rf"\p{{Cf}}|{_STACKED.pattern}")
_CLUSTER = re.compile(rf".{_STACKED.pattern}*", re.DOTALL)
_WORD = re.compile(r"\w+")
_LATIN = re.compile("[a-z]")
_LIKE_LATIN = {
    "CYRILLIC": dict(zip("авгеікмнорсѕтухцһјԁԛԝьѵӏ", "abreikmhopcstyxuhjdqwbvl", strict=True)),
    "GREEK": dict(zip("αβγεηικνορτυχωϲϳ", "abyenikvoptuxwcj", strict=True)),
}
"""By script: lower-case letters and the Latin letters they resemble. From the confusables of
Unicode's UTS #39, limited to letters of living alphabets."""


@dataclass(frozen=True, slots=True)
class NormalizedText:
    """A normalized text, with the positions in the original."""

    text: str
    origins: Sequence[int]
    """For each character, and for the end: its position in the original."""

    def span(self, start: int, end: int) -> TextSpan:
        """The range in the original."""
        return self.origins[start], self.origins[end]


def plain(text: str) -> NormalizedText:
    """The text without invisible characters."""
    if text.isascii() or _is_plain(text):
        return NormalizedText(text, range(len(text) + 1))
    parts: list[str] = []
    origins: list[int] = []
    for match in _CLUSTER.finditer(text):
        visible = _visible(match[0])
        parts.append(visible)
        origins += [match.start()] * len(visible)
    return NormalizedText("".join(parts), [*origins, len(text)])


def _is_plain(text: str) -> bool:
    """Whether the text has no invisible characters and is in NFKC."""
    return unicodedata.is_normalized("NFKC", text) and _UNSEEN.search(text) is None


def _visible(cluster: str) -> str:
    """A letter composed with its marks if there is such a character, else without them."""
    if len(cluster) == 1 and cluster.isascii():
        return cluster
    return (
        _cached_without_marks(cluster) if len(cluster) <= _MAX_CACHED else _without_marks(cluster)
    )


def _without_marks(cluster: str) -> str:
    composed = _STACKED.sub("", unicodedata.normalize("NFKC", cluster[: 1 + _MAX_MARKS]))
    return "".join(c for c in composed if unicodedata.category(c) != "Cf")


_MAX_MARKS = 30
"""Marks of a letter that are composed with it; more are in no language (UAX #15), and sorting them
takes quadratic time."""
_MAX_CACHED = 4
"""Maximum length of clusters that are cached, since texts repeat them often."""
_cached_without_marks = lru_cache(maxsize=4096)(_without_marks)


def caseless(form: NormalizedText) -> NormalizedText:
    """A plain form, case-folded."""
    if form.text.isascii():
        return NormalizedText(form.text.lower(), form.origins)
    parts: list[str] = []
    origins: list[int] = []
    for character, origin in zip(form.text, form.origins, strict=False):
        small = character.casefold()
        parts.append(small)
        origins += [origin] * len(small)
    return NormalizedText("".join(parts), [*origins, form.origins[-1]])


def folded(form: NormalizedText) -> NormalizedText:
    """A caseless form with Latin letters in place of those that resemble them."""
    return NormalizedText(_latin(form.text), form.origins)


def _latin(text: str) -> str:
    for script, likes in _LIKE_LATIN.items():
        letters = {c for c in set(text) if unicodedata.name(c, "").startswith(script)}
        if letters:
            foreign = bool(letters - likes.keys())  # the text is in this script
            table = str.maketrans(likes)
            text = _WORD.sub(lambda match: _word(match[0], table, foreign), text)  # noqa: B023
    return text


def _word(word: str, table: dict[int, str], foreign: bool) -> str:
    return word if foreign and not _LATIN.search(word) else word.translate(table)


def merge_spans(spans: Iterable[TextSpan]) -> list[TextSpan]:
    """The ranges in order, with overlapping ones merged and empty ones left out."""
    merged: list[TextSpan] = []
    for start, end in sorted(spans):
        if start < end:
            if merged and start < merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((start, end))
    return merged


def replace_spans(text: str, spans: Iterable[TextSpan], by: str | None) -> str:
    """The text with these ranges replaced by `by`, or by as many asterisks for None."""
    parts: list[str] = []
    done = 0
    for start, end in merge_spans(spans):
        parts += [text[done:start], "*" * (end - start) if by is None else by]
        done = end
    return "".join(parts) + text[done:]


MAX_REPETITIONS = 5000
"""Limit on the product of nested counted repetitions."""

_COUNT = regex.compile(r"\{(\d*)(?:,(\d*))?\}")
_VERBOSE_ONLY = regex.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|\s+|#[^\n]*", regex.DOTALL)
"""Whitespace and comments, which are ignored under (?x), or a group in which they are not."""


class SearchTimeout(Exception):
    """A search was aborted because it exceeded its time limit."""


def compile_pattern(pattern: str) -> regex.Pattern[str]:
    """Compile a user-defined pattern. Raises a pydantic validation error."""
    if max(_repeated(pattern), _repeated(_VERBOSE_ONLY.sub(r"\1", pattern))) > MAX_REPETITIONS:
        raise wrong(
            f"its nested counted repetitions repeat something more than {MAX_REPETITIONS} times"
        )
    try:
        compiled = regex.compile(pattern)
        empty = compiled.search("", timeout=1.0) is not None
    except regex.error as error:
        raise wrong(f"not a regular expression: {error}") from error
    except (RecursionError, TimeoutError, OverflowError, MemoryError):
        raise wrong("the regular expression is too complex") from None
    if empty:
        raise wrong("matches the empty text, and therefore every message")
    return compiled


def _checked(pattern: str) -> str:
    compile_pattern(pattern)
    return pattern


Pattern = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_checked)]


def _repeated(pattern: str) -> int:
    """The maximum number of times that a part of the pattern is repeated by nested counts."""
    inner = [1]
    """For each open group: the maximum number of repetitions of a part of it."""
    last, at = 1, 0
    while at < len(pattern):
        character = pattern[at]
        count = _COUNT.match(pattern, at)
        step = 2 if character == "\\" else _class_length(pattern, at) if character == "[" else 1
        if count is not None:
            numbers = [int(n) for n in count.groups() if n]
            last *= max([1, *numbers])
            step = count.end() - at
        elif character == ")" and len(inner) > 1:
            last = inner.pop()
        else:
            last = 1
        if character == "(":
            inner.append(1)
        inner[-1] = max(inner[-1], last)
        at += step
    return max(inner)


def _class_length(pattern: str, at: int) -> int:
    """The length of a character set such as `[^])}]`."""
    end = at + 1
    if pattern[end : end + 1] == "^":
        end += 1
    if pattern[end : end + 1] == "]":
        end += 1
    while end < len(pattern) and pattern[end] != "]":
        end += 2 if pattern[end] == "\\" else 1
    return end + 1 - at


def find_spans(pattern: regex.Pattern[str], text: str, within: float) -> Iterator[tuple[int, int]]:
    """The matches. Raises `SearchTimeout` if the search takes more than `within` seconds."""
    until = monotonic() + within
    if within <= 0:
        raise SearchTimeout
    try:
        # `concurrent` releases the GIL for other threads, such as the hub's event loop.
        for match in pattern.finditer(text, timeout=within, concurrent=True):
            yield match.span()
            if monotonic() > until:  # many matches that each took a while
                raise SearchTimeout
    except TimeoutError:
        raise SearchTimeout from None


_ENDINGS = (
    "com|net|org|info|biz|io|ai|dev|app|co|me|tv|xyz|top|site|online|shop|club|link|click|live|ru|"
    "cn|de|uk|fr|nl|pl|in|br|eu|us|ch|at|to|gg|ly|edu|gov"
)
"""Top-level domains that make a name without `https://` a link."""
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
_TRAILING = ".,;:!?*_~"
"""Characters that end a sentence rather than a link."""


def links(form: NormalizedText) -> Iterator[tuple[TextSpan, str]]:
    """The links of a caseless text: the range in the original, and the host."""
    for match in _LINK.finditer(form.text):
        text = match[0].rstrip(_TRAILING)
        yield form.span(match.start(), match.start() + len(text)), host_of(text)


def host_of(link: str) -> str:
    """The host that a browser would connect to, in lower case and IDNA, without the port. Empty if
    it is not valid."""
    rest = link[match.end() :] if (match := _SCHEME.match(link)) else link
    authority = re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0]
    host = unquote(authority.rpartition("@")[2])
    if host.startswith("["):
        return _address(host[1:].partition("]")[0])
    return domain_of(host.partition(":")[0])


def domain_of(host: str) -> str:
    """The canonical form of a host. Empty if it is not valid."""
    # Letters of other scripts are not replaced, because they make a different host.
    text = plain(host).text.translate(_DOTS).casefold().rstrip(".")
    if _NO_HOST.search(text):
        return ""
    try:
        # Forms that browsers accept as addresses: 127.1, 0x7f000001, 2130706433.
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
    """Whether the host is one of these domains or a subdomain."""
    return any(host == domain or host.endswith(f".{domain}") for domain in domains)
