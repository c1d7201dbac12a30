"""Finds keys, tokens and passwords in a text.

Known formats are recognized by their documented prefixes. Other secrets are recognized by the word
before them (`token=…`) if they look random.

Every message is checked, so substring searches rule out most texts, and a pattern is used only if
one of its hints occurs. The time is linear in the length of a text: patterns start only at the
beginning of a run that they would otherwise rescan from many positions.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from hubbub.mods.moderation.text import TextSpan, plain

__all__ = ["SecretMatch", "may_have_secret", "named_secret", "secrets_in"]


class SecretMatch(NamedTuple):
    """A secret in a text."""

    kind: str
    span: TextSpan


class _Kind(NamedTuple):
    name: str
    hints: tuple[str, ...]
    """Substrings: only texts with one of them are searched."""
    find: Callable[[str], Iterator[TextSpan]]
    """Returns the ranges of such secrets in a text."""


def _kind(name: str, hints: str, pattern: str, *, flags: int = 0) -> _Kind:
    """A kind defined by a pattern, or by its group `secret`."""
    compiled = re.compile(pattern, flags | re.VERBOSE)
    group = "secret" if "secret" in compiled.groupindex else 0

    def find(text: str) -> Iterator[TextSpan]:
        return (match.span(group) for match in compiled.finditer(text))

    return _Kind(name, tuple(hints.split()), find)


_B, _E = r"(?<![A-Za-z0-9_])", r"(?![A-Za-z0-9_])"
_DIGIT_SOON = r"(?=[A-Za-z0-9_-]{0,60}[0-9])"
_WORDS = (
    r"api[_-]?key|access[_-]?key|private[_-]?key|secret(?:[_-]?key)?|token|passwd|password|"
    r"passphrase|pwd|credentials?|auth[_-]?key|client[_-]?secret"
)
_NAMED = re.compile(rf"(?<![A-Za-z])(?:{_WORDS})", re.IGNORECASE)
_GUESSED = re.compile(
    rf"{_NAMED.pattern}[A-Za-z0-9_]{{0,16}}[\"'`]?\s{{0,4}}(?:[:=]{{1,2}}>?|\bis\b)\s{{0,4}}[\"'`]?"
    r"(?P<secret>[^\s\"'`,;<>(){}\[\]]{8,400})",
    re.IGNORECASE,
)

_AWS_SECRET = re.compile(r"[:=]>?\s*[\"']?(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])")
_AWS_NAME = re.compile(r"aws[\w.\s-]{0,24}(?:secret|key)[\w.\s-]{0,24}\Z", re.IGNORECASE)
_AWS_NAME_LENGTH = len("awssecret") + 2 * 24


def _aws_secrets(text: str) -> Iterator[TextSpan]:
    """Forty characters of base64 after a name that refers to AWS and a colon or equals sign."""
    for match in _AWS_SECRET.finditer(text):
        at = match.start()
        end = len(text[: at - 1 if text[at - 1 : at] in (":", "=") else at].rstrip())
        if text[end - 1 : end] in ("'", '"'):
            end -= 1
        if _AWS_NAME.search(text, max(0, end - _AWS_NAME_LENGTH), end):
            yield match.span("secret")


_JWT = re.compile(r"(?<![\w-])(?P<head>[\w-]{11,}+)\.(?P<body>eyJ[\w-]{8,}+)(?:\.[\w-]*+)?")
_JWT_HEAD = re.compile(rf"{_B}eyJ[\w-]{{8}}")


def _jwts(text: str) -> Iterator[TextSpan]:
    """RFC 7519: header and payload are JSON objects in base64url, so both start with `{"`."""
    at = 0
    while (match := _JWT.search(text, at)) is not None:
        if (head := _JWT_HEAD.search(text, match.start(), match.end("head"))) is not None:
            yield head.start(), match.end()
            at = match.end()
        else:
            at = match.start("body")


_KINDS = (
    # AWS, "IAM identifiers": unique id prefixes of access keys.
    _kind("aws key", "AKIA ASIA ABIA ACCA", rf"{_B}(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{{16}}{_E}"),
    _Kind("aws secret", ("aws", "AWS", "Aws"), _aws_secrets),
    # GitHub, "About authentication to GitHub": token formats.
    _kind("github token", "ghp_ gho_ ghu_ ghs_ ghr_", rf"{_B}gh[pousr]_[A-Za-z0-9_.-]{{30,}}"),
    _kind("github token", "github_pat_", rf"{_B}github_pat_[A-Za-z0-9_]{{22,}}"),
    # GitLab, "Token overview": token prefixes.
    _kind("gitlab token",
        "glpat- gldt- glrt- glcbt- glptt- glft- glsoat- glagent- gloas-",
        rf"{_B}gl(?:pat|dt|rt|cbt|ptt|ft|soat|agent|oas)-[\w.-]{{20,}}"),
    # OpenAI, Anthropic, OpenRouter and others that use the same prefix.
    _kind("api key", "sk-", rf"(?<![A-Za-z0-9_-])sk-{_DIGIT_SOON}[A-Za-z0-9_-]{{20,}}"),
    # Slack, "Token types", and incoming webhooks, whose address is secret.
    _kind("slack token", "xox xapp-", rf"{_B}(?:xox[abeoprs]|xapp)-(?:\d-)?[A-Za-z0-9-]{{10,}}"),
    _kind("slack webhook", "hooks.slack", r"hooks\.slack\.com/[a-z]+/(?P<secret>[\w/+-]{20,})"),
    # Google Cloud, "Use API keys"; OAuth access tokens and client secrets.
    _kind("google key", "AIza", rf"{_B}AIza[0-9A-Za-z_-]{{35}}(?![0-9A-Za-z_-])"),
    _kind("google token", "ya29. GOCSPX-", rf"{_B}(?:ya29\.|GOCSPX-)[0-9A-Za-z_-]{{20,}}"),
    # Stripe, "API keys"; publishable ones (pk) are not secret.
    _kind("stripe key", "sk_ rk_ whsec_",
        rf"{_B}(?:[sr]k_(?:live|test)_[A-Za-z0-9]{{16,}}|whsec_[A-Za-z0-9+/=]{{20,}})"),
    _kind("twilio key", "SK", rf"{_B}SK[0-9a-f]{{32}}{_E}"),
    _kind("sendgrid key", "SG.", rf"{_B}SG\.[\w-]{{16,32}}\.[\w-]{{32,64}}"),
    _kind("npm token", "npm_", rf"{_B}npm_[A-Za-z0-9]{{36}}{_E}"),
    _kind("pypi token", "pypi-", rf"{_B}pypi-[A-Za-z0-9_-]{{50,}}"),
    _kind("hugging face token", "hf_", rf"{_B}hf_[A-Za-z0-9]{{30,}}{_E}"),
    _kind("telegram token", ":AA", rf"{_B}\d{{8,10}}:AA[A-Za-z0-9_-]{{33}}(?![A-Za-z0-9_-])"),
    _kind("azure key", "AccountKey=", r"AccountKey=(?P<secret>[A-Za-z0-9+/]{80,}={0,2})"),
    # Hubbub's own.
    _kind("hubbub token", "hub_", rf"{_B}hub_[A-Za-z0-9_-]{{43}}(?![A-Za-z0-9_-])"),
    # RFC 7468 and OpenSSH, PGP: also without the end marker.
    _kind(
        "private key", "-----BEGIN",
        r"-----BEGIN\ (?:[A-Z0-9]+\ ){0,3}PRIVATE\ KEY(?:\ BLOCK)?-----"
        r"(?:.*?-----END\ (?:[A-Z0-9]+\ ){0,3}PRIVATE\ KEY(?:\ BLOCK)?-----|.*)",
        flags=re.DOTALL,
    ),
    _Kind("jwt", (".eyJ",), _jwts),
    # RFC 6750 and RFC 7617.
    _kind("bearer token", "earer EARER",
        r"\bbearer\s{1,4}(?P<secret>(?=[^\s]{0,80}[0-9])[A-Za-z0-9._~+/-]{16,}={0,2})",
        flags=re.IGNORECASE),
    _kind("basic credentials", "asic ASIC",
        r"authorization[\"']?\s{0,4}[:=]\s{0,4}[\"']?basic\s{1,4}(?P<secret>[A-Za-z0-9+/]{8,}={0,2})",
        flags=re.IGNORECASE),
    # RFC 3986, 3.2.1: userinfo.
    _kind("password", "://",
        r"(?<![a-z0-9+.-])[a-z][a-z0-9+.-]{0,20}://[^\s/:@]{0,64}:"
        r"(?P<secret>(?![$<{*\[])[^\s/@]{3,200})@(?=[\w\[])",
        flags=re.IGNORECASE),
)  # fmt: skip


_RARE = "_=J9G:-KRWzxA"
"""Few texts have more than two of these characters, and they are faster to find than words."""


def _by_rare() -> Mapping[str, Sequence[str]]:
    """All hints, by their rare character."""
    hints: dict[str, list[str]] = {}
    for hint in dict.fromkeys(hint for kind in _KINDS for hint in kind.hints):
        hints.setdefault(next((c for c in _RARE if c in hint), ""), []).append(hint)
    return hints


HINTS = _by_rare()
MIN_BITS = 2.75
"""Minimum entropy in bits per character for a text to look random."""
_PLAIN_WORD = re.compile(r"[A-Za-z]?[a-z]{0,15}|[A-Z]{1,15}|[0-9]{1,4}")
_LETTER, _DIGIT = re.compile(r"[A-Za-z]"), re.compile(r"[0-9]")


def secrets_in(text: str) -> list[SecretMatch]:
    """The secrets in a text, in order and without overlaps."""
    form = plain(text)
    matches: list[SecretMatch] = []
    if _may_have_known(form.text):
        for kind in _KINDS:
            if any(hint in form.text for hint in kind.hints):
                matches += [
                    SecretMatch(kind.name, form.span(*span)) for span in kind.find(form.text)
                ]
    if _may_have_guessed(form.text):
        matches += [SecretMatch("secret", form.span(*span)) for span in _guessed(form.text)]
    return _without_overlaps(matches) if len(matches) > 1 else matches


def may_have_secret(text: str) -> bool:
    """Whether the text may have a secret. A fast check."""
    if not text.isascii():  # it could hide secrets from a substring search
        text = plain(text).text
    return _may_have_known(text) or _may_have_guessed(text)


def _may_have_known(text: str) -> bool:
    # Written out because it runs for every message: a loop takes twice as long, and searching for a
    # word takes four times as long as for a character. So each word is searched for only if its
    # rarest character, or one required by its format, occurs. A test checks this against the hints.
    return (
        ("_" in text and _has("_", text))
        or ("-" in text and _has("-", text))
        or ("G" in text and _has("G", text))
        or ("A" in text and (_has("A", text) or "AWS" in text or "AIza" in text))
        or (":" in text and (":AA" in text or "://" in text))
        or ("K" in text and ("AKIA" in text or "SK" in text))
        or ("=" in text and "AccountKey=" in text)
        or ("J" in text and ".eyJ" in text)
        or ("9" in text and "ya29." in text)
        or ("R" in text and "EARER" in text)
        or ("x" in text and "xox" in text)
        or ("/" in text and "hooks.slack" in text)
        or ((":" in text or "=" in text) and ("aws" in text or "asic" in text))
        or "earer" in text
    )


def _has(rare: str, text: str) -> bool:
    for hint in HINTS[rare]:  # noqa: SIM110  a generator is slower than the searches
        if hint in text:
            return True
    return False


def _may_have_guessed(text: str) -> bool:
    small = text.lower()
    if not (":" in text or "=" in text or "is" in small):  # no name is followed by a value
        return False
    named = (
        "key" in small
        or "token" in small
        or "passw" in small
        or "passp" in small
        or "secret" in small
        or "credential" in small
        or "pwd" in small
    )
    return named and _DIGIT.search(text) is not None  # without a digit nothing looks random


def _guessed(text: str) -> Iterator[TextSpan]:
    """Values that follow a telling name and look random."""
    for match in _GUESSED.finditer(text):
        if _looks_random(match["secret"]):
            yield match.span("secret")


def _without_overlaps(matches: list[SecretMatch]) -> list[SecretMatch]:
    """The matches with overlapping ones merged, each with the kind of the first."""
    merged: list[SecretMatch] = []
    for each in sorted(matches, key=lambda m: m.span[0]):  # stable: more specific kinds come first
        if not merged or each.span[0] >= merged[-1].span[1]:
            merged.append(each)
        elif each.span[1] > merged[-1].span[1]:
            merged[-1] = SecretMatch(merged[-1].kind, (merged[-1].span[0], each.span[1]))
    return merged


def named_secret(name: str, value: str) -> bool:
    """Whether a field with this name and value has a secret."""
    return _NAMED.search(plain(name).text) is not None and _looks_random(plain(value).text)


def _looks_random(text: str) -> bool:
    """Whether it is not made of words, a number or a placeholder."""
    text = text.rstrip(".:!?")
    if len(text) < 8 or not (_LETTER.search(text) and _DIGIT.search(text)):
        return False
    if "://" in text or all(_PLAIN_WORD.fullmatch(part) for part in re.split(r"[-_./:@]", text)):
        return False
    size = len(text)
    bits = -sum(n / size * math.log2(n / size) for n in Counter(text).values())
    return bits >= MIN_BITS
