"""Texts as rules look at them: their forms, regular expressions of users, and links."""

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
    "compiled",
    "folded",
    "found",
    "host_of",
    "is_within",
    "joined",
    "links",
    "plain",
    "replaced",
]

TextSpan = tuple[int, int]
"""Where something stands in the original text: first character, and the one after the last."""

_STACKED = re.compile(
    "[\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f]"
)
"""Marks that any letter takes. Those of a script, such as vowels of Hindi, are no decoration."""
_UNSEEN = regex.compile(rf"\p{{Cf}}|{_STACKED.pattern}")
_CLUSTER = re.compile(rf".{_STACKED.pattern}*", re.DOTALL)
_WORD = re.compile(r"\w+")
_LATIN = re.compile("[a-z]")
_LIKE_LATIN = {
    "CYRILLIC": dict(zip("авгеікмнорсѕтухцһјԁԛԝьѵӏ", "abreikmhopcstyxuhjdqwbvl", strict=True)),
    "GREEK": dict(zip("αβγεηικνορτυχωϲϳ", "abyenikvoptuxwcj", strict=True)),
}
"""By script: letters, in lower case, and the Latin ones that they are mistaken for. After the
confusables of Unicode's UTS #39, as far as they are letters of living alphabets."""


@dataclass(frozen=True, slots=True)
class NormalizedText:
    """A text in another form."""

    text: str
    origins: Sequence[int]
    """For each character, and for the end: where in the original it begins."""

    def span(self, start: int, end: int) -> TextSpan:
        """Where the part stands in the original."""
        return self.origins[start], self.origins[end]


def plain(text: str) -> NormalizedText:
    """The text without what a reader does not see."""
    if text.isascii() or _is_plain(text):
        return NormalizedText(text, range(len(text) + 1))
    made: list[str] = []
    origins: list[int] = []
    for match in _CLUSTER.finditer(text):
        shown = _shown(match[0])
        made.append(shown)
        origins += [match.start()] * len(shown)
    return NormalizedText("".join(made), [*origins, len(text)])


def _is_plain(text: str) -> bool:
    """Whether a reader sees every character of it, as it stands."""
    return unicodedata.is_normalized("NFKC", text) and _UNSEEN.search(text) is None


def _shown(cluster: str) -> str:
    """A letter with its marks as one character where there is one, else without them."""
    if len(cluster) == 1 and cluster.isascii():
        return cluster
    return _seen(cluster) if len(cluster) <= _SHORT else _without_marks(cluster)


def _without_marks(cluster: str) -> str:
    composed = _STACKED.sub("", unicodedata.normalize("NFKC", cluster))
    return "".join(c for c in composed if unicodedata.category(c) != "Cf")


_SHORT = 4
"""Characters of clusters that are remembered: a text has the same ones again and again."""
_seen = lru_cache(maxsize=4096)(_without_marks)


def caseless(form: NormalizedText) -> NormalizedText:
    """A plain form without case."""
    if form.text.isascii():
        return NormalizedText(form.text.lower(), form.origins)
    made: list[str] = []
    origins: list[int] = []
    for character, origin in zip(form.text, form.origins, strict=False):
        small = character.casefold()
        made.append(small)
        origins += [origin] * len(small)
    return NormalizedText("".join(made), [*origins, form.origins[-1]])


def folded(form: NormalizedText) -> NormalizedText:
    """A form without case, with Latin letters for those that look like them."""
    return NormalizedText(_latin(form.text), form.origins)


def _latin(text: str) -> str:
    for script, likes in _LIKE_LATIN.items():
        letters = {c for c in set(text) if unicodedata.name(c, "").startswith(script)}
        if letters:
            foreign = bool(letters - likes.keys())  # somebody writes in this script
            table = str.maketrans(likes)
            text = _WORD.sub(lambda match: _word(match[0], table, foreign), text)  # noqa: B023
    return text


def _word(word: str, table: dict[int, str], foreign: bool) -> str:
    return word if foreign and not _LATIN.search(word) else word.translate(table)


def joined(spans: Iterable[TextSpan]) -> list[TextSpan]:
    """The same places in their order, those that overlap as one; empty ones left out."""
    made: list[TextSpan] = []
    for start, end in sorted(spans):
        if start < end:
            if made and start < made[-1][1]:
                made[-1] = made[-1][0], max(end, made[-1][1])
            else:
                made.append((start, end))
    return made


def replaced(text: str, spans: Iterable[TextSpan], by: str | None) -> str:
    """The text with `by` in these places; None: asterisks, as many as there were characters."""
    made: list[str] = []
    done = 0
    for start, end in joined(spans):
        made += [text[done:start], "*" * (end - start) if by is None else by]
        done = end
    return "".join(made) + text[done:]


MOST_REPEATED = 5000
"""How often counted repetitions within each other may repeat something, multiplied."""

_COUNT = regex.compile(r"\{(\d*)(?:,(\d*))?\}")
_LOOSE = regex.compile(r"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|\s+|#[^\n]*", regex.DOTALL)
"""Blanks and comments, which mean nothing under (?x); the group is what keeps them."""


class SearchTimeout(Exception):
    """A search was given up because its time was over."""


def compiled(pattern: str) -> regex.Pattern[str]:
    """Raises what pydantic takes for a mistake of the user."""
    if max(_repeated(pattern), _repeated(_LOOSE.sub(r"\1", pattern))) > MOST_REPEATED:
        raise wrong(
            "its counted repetitions within each other repeat something more than "
            f"{MOST_REPEATED} times"
        )
    try:
        made = regex.compile(pattern)
        empty = made.search("", timeout=1.0) is not None
    except regex.error as error:
        raise wrong(f"no regular expression: {error}") from error
    except (RecursionError, TimeoutError, OverflowError, MemoryError):
        raise wrong("too complicated a regular expression") from None
    if empty:
        raise wrong("matches the empty text, and so every message")
    return made


def _checked(pattern: str) -> str:
    compiled(pattern)
    return pattern


Pattern = Annotated[str, Field(min_length=1, max_length=500), AfterValidator(_checked)]


def _repeated(pattern: str) -> int:
    """The most often that a part of the pattern is repeated by counts around it."""
    inner = [1]
    """For each group that is open: the most often that something in it is repeated."""
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
    """Of a set of characters: `[^])}]`."""
    end = at + 1
    if pattern[end : end + 1] == "^":
        end += 1
    if pattern[end : end + 1] == "]":
        end += 1
    while end < len(pattern) and pattern[end] != "]":
        end += 2 if pattern[end] == "\\" else 1
    return end + 1 - at


def found(pattern: regex.Pattern[str], text: str, within: float) -> Iterator[tuple[int, int]]:
    """Where it matches. Raises `SearchTimeout` if finding that takes more than `within` s."""
    until = monotonic() + within
    if within <= 0:
        raise SearchTimeout
    try:
        # Concurrently: other threads go on meanwhile, the hub's loop if this is not its own.
        for match in pattern.finditer(text, timeout=within, concurrent=True):
            yield match.span()
            if monotonic() > until:  # many matches, each of which took a while
                raise SearchTimeout
    except TimeoutError:
        raise SearchTimeout from None


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


def links(form: NormalizedText) -> Iterator[tuple[TextSpan, str]]:
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
