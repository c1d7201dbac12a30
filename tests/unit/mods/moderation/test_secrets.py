from __future__ import annotations

import re
import time
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.mods.api import PASS, Reject, Replace
from hubbub.mods.moderation import secrets
from hubbub.mods.moderation.mod import LONG, Moderation
from hubbub.mods.moderation.rules import ModerationConfig
from hubbub.mods.moderation.secrets import may_have_secret, secrets_in
from hubbub.network.auth import new_token
from hubbub.protocol.messages import Attachment, Draft, Quote
from tests.unit.protocol.drafts import hostile_text

pytestmark = pytest.mark.behaviour("M-242")

DRAFT = Draft("ann", "human", "broadcast", "broadcast", "hello")
# Invented, and concatenated so that scanners of repositories do not report them as leaked.
X = "9fK2" * 20
AWS = "AKIA" + "Q3EGRTZ5XN7WPL2M"
KEY = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow\nabc=\n-----END RSA " + "PRIVATE KEY-----"

EXAMPLES = {
    "aws key": AWS,
    "aws secret": "aws_secret_access_key = " + X[:40],
    "github token": "ghp_" + X[:36],
    "gitlab token": "glpat-" + X[:20],
    "api key": "sk-" + "proj-" + X[:48],
    "slack token": "xoxb-" + "123456789012-" + X[:24],
    "slack webhook": "https://hooks.slack.com/services/" + "T00000000/B00000000/" + X[:24],
    "google key": "AIza" + X[:35],
    "google token": "ya29." + X[:60],
    "stripe key": "sk_live_" + X[:24],
    "twilio key": "SK" + "0a1b" * 8,
    "sendgrid key": "SG." + X[:22] + "." + X[:43],
    "npm token": "npm_" + X[:36],
    "pypi token": "pypi-" + X[:60],
    "hugging face token": "hf_" + X[:34],
    "telegram token": "123456789:AA" + X[:33],
    "azure key": "AccountKey=" + (X + X)[:86] + "==",
    "hubbub token": new_token(),
    "private key": KEY,
    "jwt": "eyJ" + "hbGciOiJIUzI1NiJ9" + ".eyJ" + "zdWIiOiIxIn0" + "." + X[:43],
    "bearer token": "Authorization: Bearer " + X[:32],
    "basic credentials": "authorization: Basic " + "YW5uOmh1bnRlcjI=",
    "password": "postgres://ann:" + "hunter2@db.example.org/x",
    "secret": "API_TOKEN=" + "a81Kd92-0fLq77",
}


def redacted(draft: Draft) -> Draft:
    verdict = Moderation(ModerationConfig()).on_message(draft)
    assert isinstance(verdict, Replace)
    return verdict.draft


def test_each_kind_of_secret_is_redacted() -> None:
    for kind, secret in EXAMPLES.items():
        draft = redacted(DRAFT.replace(content=f"look: {secret}\nthanks"))
        text = str(draft.content)
        assert f"[redacted: {kind}]" in text, kind
        assert (text[:6], text[-7:]) == ("look: ", "\nthanks")
        for part in (X[:20], "hunter2", "MIIEow", "0a1b0a1b", AWS, "YW5u", "a81Kd92"):
            assert part not in text, kind
        assert kind in draft.notes[0]
    draft = redacted(DRAFT.replace(content=EXAMPLES["password"]))
    assert draft.content == "postgres://ann:[redacted: password]@db.example.org/x"
    draft = redacted(DRAFT.replace(content=f"é {AWS[:9]}\u200b{AWS[9:]}."))
    assert draft.content == "é [redacted: aws key].", "across an invisible character"
    assert redacted(DRAFT.replace(content=f"a {KEY[:-20]}")).content == "a [redacted: private key]"


def test_text_without_a_secret_passes_unchanged() -> None:
    for text in (
        "the token is in the vault, see section-4-of-the-docs",
        "token=<your-token> password=${DB_PASSWORD} secret: ********",
        "api_key: see-the-readme-for-that",
        "password: correct horse battery staple",
        "keyboard: 12345678 key=value123",
        "risk-management-for-2024-and-later",
        "https://example.org:8080/path@x",
        "the tokens=4096 and max_tokens: 128000 limits",
        "monkey=banana12",
        "token_url = https://login.example.org/oauth2/v1",
        "sha256 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "[redacted: secret]",
        "bearer of bad news, everybody-knows-that",
    ):
        assert Moderation(ModerationConfig()).on_message(DRAFT.replace(content=text)) is PASS, text


def test_every_text_of_a_message_is_redacted_and_its_mentions_stay() -> None:
    content: JsonValue = {
        "deep": [{AWS: 1}, [AWS]],
        "password": "hunter2hunter2X",
        "user": "hunter2hunter2X",
        "n": 5,
    }
    draft = redacted(
        DRAFT.replace(
            content=content,
            text_representation=f"see {AWS}",
            quote=Quote(message_id="m1", text=AWS),
            attachments=(Attachment(name=f"{AWS}.txt", uri=f"https://x.org/?k={AWS}", size=3),),
            mentions=("bob",),
        )
    )
    placeholder = "[redacted: aws key]"
    assert draft.content == {
        "deep": [{placeholder: 1}, [placeholder]],
        "password": "[redacted: secret]",
        "user": "hunter2hunter2X",
        "n": 5,
    }
    assert draft.text_representation == f"see {placeholder}"
    assert draft.quote == Quote(message_id="m1", text=placeholder)
    [attachment] = draft.attachments
    assert (attachment.name, attachment.uri, attachment.size) == (
        f"{placeholder}.txt", f"https://x.org/?k={placeholder}", 3,
    )  # fmt: skip
    assert draft.mentions == ("bob",)


def test_keys_that_become_equal_by_redaction_are_all_retained() -> None:
    draft = redacted(DRAFT.replace(content={AWS: 1, AWS[:-1] + "X": 2}))
    assert draft.content == {"[redacted: aws key]": 1, "[redacted: aws key] (2)": 2}


def test_messages_of_the_hub_follow_the_setting_for_secrets() -> None:
    draft = DRAFT.replace(sender_kind="system", content=AWS)
    assert redacted(draft).content == "[redacted: aws key]"
    verdict = Moderation(ModerationConfig(secrets="reject")).on_message(draft)
    assert isinstance(verdict, Reject)
    assert AWS not in verdict.reason
    assert Moderation(ModerationConfig(secrets="off")).on_message(draft) is PASS


@given(hostile_text())
def test_detected_secrets_never_overlap(text: str) -> None:
    message = f"{text} {AWS} {text}"
    spans = [each.span for each in secrets_in(message)]
    assert spans
    ends = [0, *(end for _, end in spans)]
    assert all(before <= start < end for before, (start, end) in zip(ends, spans, strict=False))
    assert AWS not in str(redacted(DRAFT.replace(content=message)).content)


# The full patterns, too slow for a long text.
WHOLE = {
    "aws secret": re.compile(
        r"aws[\w.\s-]{0,24}(?:secret|key)[\w.\s-]{0,24}[\"']?\s*[:=]{1,2}>?\s*[\"']?"
        r"(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        re.IGNORECASE,
    ),
    "jwt": re.compile(r"(?<![A-Za-z0-9_])(?P<secret>eyJ[\w-]{8,}\.eyJ[\w-]{8,}(?:\.[\w-]{0,})?)"),
    "secret": re.compile(
        r"(?<![A-Za-z])(?:[A-Za-z0-9]{1,24}[_.-]){0,4}(?:api[_-]?key|access[_-]?key|"
        r"private[_-]?key|secret(?:[_-]?key)?|token|passwd|password|passphrase|pwd|credentials?|"
        r"auth[_-]?key|client[_-]?secret)"
        r"[A-Za-z0-9_]{0,16}[\"'`]?\s{0,4}(?:[:=]{1,2}>?|\bis\b)\s{0,4}[\"'`]?"
        r"(?P<secret>[^\s\"'`,;<>(){}\[\]]{8,400})",
        re.IGNORECASE,
    ),
}
PIECES = [
    *EXAMPLES.values(), *(hint for kind in secrets._KINDS for hint in kind.hints),
    "secret", "token", "passwd", "pwd", "credential", "aws", "key", "is", "eyJ", X[:11],
    X[:40], "a81Kd92-0fLq77", " ", "\t\t", ":", "=", "=>", '"', "'", ".", "-", "_", "a", "é", "\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_a_search_by_hints_misses_no_secret_that_a_full_search_detects(text: str) -> None:
    expected = {(kind.name, span) for kind in secrets._KINDS for span in kind.find(text)}
    expected |= {("secret", span) for span in secrets._guessed(text)}
    for name, pattern in WHOLE.items():
        for match in pattern.finditer(text):
            if name != "secret" or secrets._looks_random(match["secret"]):
                expected.add((name, match.span("secret")))
    covered = {place for each in secrets_in(text) for place in range(*each.span)}
    assert covered >= {place for _, span in expected for place in range(*span)}


def test_the_quick_check_recognizes_every_hint() -> None:
    words = ("api-key", "access_key", "secret", "token", "passwd", "password", "passphrase", "pwd")
    for hint in (*chain(*secrets.HINTS.values()), *(f"{word} 1" for word in words)):
        assert may_have_secret(f"so {hint} it is: /"), hint
    assert not may_have_secret("so it is, Ann: the task of 9:30 in New York is done - by bob_2")


@pytest.mark.slow  # compares CPU times
def test_the_search_for_secrets_takes_linear_time() -> None:
    def used(unit: str, size: int) -> float:
        text = unit * (size // len(unit))
        durations = []
        for _ in range(3):
            start = time.thread_time()
            secrets_in(text)
            durations.append(time.thread_time() - start)
        return min(durations)

    units = (
        "-eyJ",
        "aws key" + " " * 90,
        "a_token_",
        "token=abcd1234 ",
        "a://b:",
        "é",
        "\u200b",
        "\u0301\u0327",
    )
    for unit in (*units, "sk-aa"):  # eight times the text: quadratic would be 64 times the time
        assert used(unit, 64_000) < 20 * used(unit, 8_000), unit


def test_a_message_takes_long_when_one_text_exceeds_the_threshold() -> None:
    mod = Moderation(ModerationConfig())
    assert not mod.takes_long(DRAFT.replace(content="x" * LONG))
    assert mod.takes_long(DRAFT.replace(content="x" * (LONG + 1)))
    assert mod.takes_long(DRAFT.replace(quote=Quote(message_id="m1", text="x" * LONG)))
