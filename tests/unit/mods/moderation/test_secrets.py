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
# Made up, and put together here so that no scanner of repositories takes them for real ones.
X = "9fK2" * 20
AWS = "AKIA" + "Q3EGRTZ5XN7WPL2M"
KEY = "-----BEGIN RSA " + "PRIVATE KEY-----\nMIIEow\nabc=\n-----END RSA " + "PRIVATE KEY-----"

KNOWN = {
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


def kept(draft: Draft) -> Draft:
    verdict = Moderation(ModerationConfig()).on_message(draft)
    assert isinstance(verdict, Replace)
    return verdict.draft


def test_a_secret_is_replaced_by_its_kind() -> None:
    for kind, secret in KNOWN.items():
        made = kept(DRAFT.replace(content=f"look: {secret}\nthanks"))
        text = str(made.content)
        assert f"[redacted: {kind}]" in text, kind
        assert (text[:6], text[-7:]) == ("look: ", "\nthanks")
        for part in (X[:20], "hunter2", "MIIEow", "0a1b0a1b", AWS, "YW5u", "a81Kd92"):
            assert part not in text, kind
        assert kind in made.notes[0]
    made = kept(DRAFT.replace(content=KNOWN["password"]))
    assert made.content == "postgres://ann:[redacted: password]@db.example.org/x"
    made = kept(DRAFT.replace(content=f"é {AWS[:9]}\u200b{AWS[9:]}."))
    assert made.content == "é [redacted: aws key].", "though invisible characters are in it"
    assert kept(DRAFT.replace(content=f"a {KEY[:-20]}")).content == "a [redacted: private key]"


def test_what_is_no_secret_stays() -> None:
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


def test_secrets_go_from_all_texts_of_a_message_and_who_is_mentioned_stays() -> None:
    content: JsonValue = {
        "deep": [{AWS: 1}, [AWS]],
        "password": "hunter2hunter2X",
        "user": "hunter2hunter2X",
        "n": 5,
    }
    made = kept(
        DRAFT.replace(
            content=content,
            text_representation=f"see {AWS}",
            quote=Quote(message_id="m1", text=AWS),
            attachments=(Attachment(name=f"{AWS}.txt", uri=f"https://x.org/?k={AWS}", size=3),),
            mentions=("bob",),
        )
    )
    gone = "[redacted: aws key]"
    assert made.content == {
        "deep": [{gone: 1}, [gone]],
        "password": "[redacted: secret]",
        "user": "hunter2hunter2X",
        "n": 5,
    }
    assert made.text_representation == f"see {gone}"
    assert made.quote == Quote(message_id="m1", text=gone)
    [attachment] = made.attachments
    assert (attachment.name, attachment.uri, attachment.size) == (
        f"{gone}.txt", f"https://x.org/?k={gone}", 3,
    )  # fmt: skip
    assert made.mentions == ("bob",)


def test_fields_that_become_the_same_are_all_kept() -> None:
    made = kept(DRAFT.replace(content={AWS: 1, AWS[:-1] + "X": 2}))
    assert made.content == {"[redacted: aws key]": 1, "[redacted: aws key] (2)": 2}


def test_secrets_of_the_hub_itself_go_too_and_can_be_refused_or_let_through() -> None:
    draft = DRAFT.replace(sender_kind="system", content=AWS)
    assert kept(draft).content == "[redacted: aws key]"
    verdict = Moderation(ModerationConfig(secrets="reject")).on_message(draft)
    assert isinstance(verdict, Reject)
    assert AWS not in verdict.reason
    assert Moderation(ModerationConfig(secrets="off")).on_message(draft) is PASS


@given(hostile_text())
def test_secrets_lie_apart_within_any_text(text: str) -> None:
    spoken = f"{text} {AWS} {text}"
    found = secrets_in(spoken)
    assert found
    ends = [0, *(each.span[1] for each in found)]
    assert all(end <= each.span[0] < each.span[1] for end, each in zip(ends, found, strict=False))
    assert AWS not in str(kept(DRAFT.replace(content=spoken)).content)


# Forms in one piece, which take too long to look for in a long text as they stand.
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
    *KNOWN.values(), *(hint for kind in secrets._KINDS for hint in kind.hints),
    "secret", "token", "passwd", "pwd", "credential", "aws", "key", "is", "eyJ", X[:11],
    X[:40], "a81Kd92-0fLq77", " ", "\t\t", ":", "=", "=>", '"', "'", ".", "-", "_", "a", "é", "\n",
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
def test_no_text_with_a_secret_is_ruled_out_beforehand(text: str) -> None:
    """What is looked for only where there is a hint of it is what a search everywhere finds."""
    expected = {(kind.name, span) for kind in secrets._KINDS for span in kind.find(text)}
    expected |= {("secret", span) for span in secrets._guessed(text)}
    for name, pattern in WHOLE.items():
        for match in pattern.finditer(text):
            if name != "secret" or secrets._looks_random(match["secret"]):
                expected.add((name, match.span("secret")))
    covered = {place for each in secrets_in(text) for place in range(*each.span)}
    assert covered >= {place for _, span in expected for place in range(*span)}


def test_no_hint_is_left_out_of_the_look_that_all_messages_get() -> None:
    words = ("api-key", "access_key", "secret", "token", "passwd", "password", "passphrase", "pwd")
    for hint in (*chain(*secrets.HINTS.values()), *(f"{word} 1" for word in words)):
        assert may_have_secret(f"so {hint} it is: /"), hint
    assert not may_have_secret("so it is, Ann: the task of 9:30 in New York is done - by bob_2")


@pytest.mark.slow  # it compares times
def test_no_text_takes_much_longer_than_it_is_long() -> None:
    def used(unit: str, size: int) -> float:
        text = unit * (size // len(unit))
        found = []
        for _ in range(3):
            began = time.thread_time()
            secrets_in(text)
            found.append(time.thread_time() - began)
        return min(found)

    units = (
        "-eyJ",
        "aws key" + " " * 90,
        "a_token_",
        "token=abcd1234 ",
        "a://b:",
        "é",
        "\u200b",
        "sk-aa",
    )
    for unit in units:  # eight times the text; by its square it would be 64 times as long
        assert used(unit, 64_000) < 20 * used(unit, 8_000), unit


def test_a_long_message_is_judged_beside_the_others() -> None:
    mod = Moderation(ModerationConfig())
    assert not mod.takes_long(DRAFT.replace(content="x" * LONG))
    assert mod.takes_long(DRAFT.replace(content="x" * (LONG + 1)))
    assert mod.takes_long(DRAFT.replace(quote=Quote(message_id="m1", text="x" * LONG)))
