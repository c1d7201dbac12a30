from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.errors import UserError
from hubbub.mods.api import PASS, Reject, Replace, Verdict
from hubbub.mods.loader import settings_of
from hubbub.mods.moderation.mod import Moderation
from hubbub.mods.moderation.rules import SWEEP, ModerationConfig, RateWindow
from hubbub.mods.moderation.text import MAX_REPETITIONS
from hubbub.protocol.messages import Attachment, Draft, Quote

DRAFT = Draft("ann", "human", "channel.desk.t3", "channel", "hello")


def mod(*rules: dict[str, Any], **settings: Any) -> Moderation:
    return Moderation(ModerationConfig.model_validate({"rules": rules, **settings}))


def moderate(content: JsonValue, *rules: dict[str, Any], **draft: Any) -> Verdict:
    return mod(*rules).on_message(DRAFT.replace(content=content, **draft))


def replaced_content(verdict: Verdict) -> JsonValue:
    assert isinstance(verdict, Replace), verdict
    return verdict.draft.content


# Patterns ---------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-243")
def test_text_matching_a_pattern_is_rejected_or_masked() -> None:
    rule = {"regex": r"\d{3}-\d{4}", "name": "phone"}
    assert moderate("call 555-1234", rule) == Reject("the text violates the rule 'phone'")
    assert moderate("call me", rule) is PASS
    assert (
        replaced_content(moderate("call 555-1234!", {**rule, "action": "mask"})) == "call ********!"
    )
    masked = {**rule, "action": "mask", "replacement": "[number]"}
    assert replaced_content(moderate(["555-1234", {"a": "555\u200b-1234"}], masked)) == [
        "[number]",
        {"a": "[number]"},
    ]
    assert moderate("555-1234", {**rule, "reason": "no numbers"}) == Reject("no numbers")


@pytest.mark.behaviour("M-243")
def test_rules_also_apply_to_quotes_and_attachment_names() -> None:
    rule = {"regex": "(?i)darn", "action": "mask"}
    verdict = moderate(
        "fine", rule,
        quote=Quote(message_id="m1", text="Darn"),
        attachments=(Attachment(name="darn.txt", uri="file:1"),),
    )  # fmt: skip
    assert isinstance(verdict, Replace)
    assert verdict.draft.quote == Quote(message_id="m1", text="****")
    assert verdict.draft.attachments == (Attachment(name="****.txt", uri="file:1"),)


@pytest.mark.behaviour("M-244")
def test_a_message_is_rejected_when_a_pattern_exceeds_the_time_limit() -> None:
    text = "y" + "a" * 60_000 + "!"
    for pattern, action in (
        (r"^y(\w+\s?)*$", "mask"),
        (r"(a|aa)+$", "reject"),
        (r"(a+a+)+y", "mask"),
        (r"((a+)+)+$", "reject"),
    ):
        rule = {"regex": pattern, "action": action, "name": "bad"}
        verdict = mod(rule, regex_time=0.02).on_message(DRAFT.replace(content=[text, text]))
        assert isinstance(verdict, Reject), pattern
        assert "'bad' could not be checked" in verdict.reason


@pytest.mark.behaviour("M-244", "M-398")
def test_an_unusable_pattern_is_refused_with_its_position() -> None:
    nested = (  # counted repetitions within each other, also across blanks and comments
        "(a{50}){50}{50}",
        "(((a{50}){50}){50}){50}",
        "(?:(?:a{70}){70}){70}",
        "(?x)(?:(?:a {70}) {70}) {70}",
        "(?x)(?:(?:a{70}) # once\n{70}) # again\n {70}",
        r"(?x)[#](?:(?:\ {70}) {70}) {70}",
    )
    for pattern in ("(", "[a", "(?P<1>x)", "a*", "(" * 450, "x" * 501, *nested):
        settings: dict[str, JsonValue] = {"rules": [{"words": ["x"]}, {"regex": pattern}]}
        with pytest.raises(UserError, match=r"^mods\.moderation\.rules\.1\.regex: ") as caught:
            settings_of(Moderation, settings)
        assert pattern not in nested or "counted repetitions" in str(caught.value), pattern
    for pattern in (
        r"\d{4}-\d{4}-\d{4}-\d{4}",
        r"[\w.]{1,255}@[\w.]{1,255}",
        r"(a{10}){10}\{99999\}",
        r"[{9999}]",
        "a{70} {70}b",
        "(?x)a{70} b {70}",
        r"[#{70}]{70}",
        r"#{70}",
    ):
        mod({"regex": pattern})
    assert MAX_REPETITIONS > 255


# Links ------------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-241")
def test_a_link_outside_the_allowed_domains_is_rejected_or_masked() -> None:
    rule: dict[str, Any] = {"links": {"allow": ["example.org", "Bücher.example"]}}
    for allowed in (
        "https://docs.example.org/x",
        "see example.org:443",
        "http://BÜCHER.example",
        "hi",
    ):
        assert moderate(allowed, rule) is PASS, allowed
    for wrong in ("https://evilexample.org", "https://example.org@evil.com", "https://examp1e.org"):
        assert moderate(wrong, rule) == Reject("a link leads to a domain that is not allowed")
    masked = {**rule, "action": "mask"}
    assert replaced_content(moderate("see https://evil.com/x?y.", masked)) == "see [link removed]."
    assert moderate("hi", rule, attachments=(Attachment(name="x", uri="https://evil.com"),)) != PASS
    assert moderate("hi", rule, attachments=(Attachment(name="x", uri="file:abc"),)) is PASS


@pytest.mark.behaviour("M-241")
def test_a_link_to_a_denied_domain_is_rejected() -> None:
    rule = {"links": {"deny": ["evil.com", "127.0.0.1"]}}
    assert moderate("https://good.com", rule) is PASS
    assert moderate("https://a.EVIL.com.", rule) != PASS
    assert moderate("http://2130706433/", rule) != PASS
    assert moderate("any example.org", {"links": {"allow": []}}) != PASS


# Length, scope ----------------------------------------------------------------------------------


@pytest.mark.behaviour("M-240")
def test_every_string_in_the_content_counts_towards_the_length_limit() -> None:
    rule = {"max_length": 5}
    assert moderate({"ab": ["cd", "e", 12345678]}, rule) is PASS
    assert moderate({"ab": ["cd", "ef"]}, rule) == Reject(
        "the text has 6 characters; the limit is 5"
    )
    assert moderate({"ab": 1}, rule, text_representation="12345") is PASS
    assert moderate({"ab": 1}, rule, text_representation="123456") != PASS


@pytest.mark.behaviour("M-245")
def test_a_rule_applies_only_within_its_threads_senders_and_exemptions() -> None:
    rule = {"words": ["darn"]}
    scopes: list[tuple[dict[str, Any], bool]] = [
        ({}, True),
        ({"threads": ["channel_desk"]}, True),
        ({"threads": ["channel.other", "channel"]}, True),
        ({"threads": ["direct", "broadcast", "channel_other"]}, False),
        ({"senders": ["human"]}, True),
        ({"senders": ["agent", "service"]}, False),
        ({"exempt": ["bob"]}, True),
        ({"exempt": ["ann"]}, False),
    ]
    for scope, applies in scopes:
        assert (moderate("darn", {**rule, **scope}) != PASS) == applies, scope
    exempt = {**rule, "exempt": ["ann"]}
    by_agent: Any = {"sender_kind": "agent"}
    assert moderate("darn", exempt, sender_id="bot", sent_by="ann", **by_agent) is PASS
    assert moderate("darn", exempt, sender_id="ann", sent_by="bob", **by_agent) != PASS
    assert moderate("darn", rule, sender_kind="system") is PASS  # only secrets apply to it


@pytest.mark.behaviour("M-245")
def test_an_invalid_rule_is_reported_with_its_position() -> None:
    wrong: list[tuple[dict[str, Any], str]] = [
        ({}, "rules.0: a rule has exactly one of"),
        ({"words": ["x"], "max_length": 3}, "this one has words and max_length"),
        ({"max_length": 3, "action": "mask"}, "max_length cannot be masked"),
        ({"words": ["x"], "replacement": "y"}, "replacement requires action: mask"),
        ({"words": ["x"], "action": "mask", "reason": "y"}, "reason requires action: reject"),
        ({"words": ["x"], "threads": ["general"]}, "rules.0.threads: 'general' is not a thread"),
        ({"words": []}, "rules.0.words: "),
        ({"links": {}}, "rules.0.links: expected either allow or deny"),
        ({"links": {"deny": ["a b"]}}, "rules.0.links.deny.0: expected a domain"),
        ({"rate": {"messages": 0, "per": "10s"}}, "rules.0.rate.messages: "),
        ({"rate": {"messages": 5, "per": "10 parsecs"}}, "rules.0.rate.per: expected a time"),
        ({"wrods": ["x"]}, "rules.0.wrods: "),
    ]
    for rule, place in wrong:
        with pytest.raises(UserError) as caught:
            settings_of(Moderation, {"rules": [rule]})
        assert str(caught.value).startswith("mods.moderation.rules.0")
        assert place in str(caught.value)


# Rate -------------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-246")
def test_the_rate_window_slides_and_forgets_silent_senders() -> None:
    window = RateWindow(2, 10.0)
    for now in (0.0, 4.0):
        assert window.wait("ann", now) == 0
        window.count("ann", now)
    assert window.wait("ann", 5.0) == 5.0
    assert window.wait("bob", 5.0) == 0
    assert window.wait("ann", 10.0) == 0
    window.count("ann", 10.0)
    assert window.wait("ann", 13.0) == 1.0
    assert window.wait("ann", -1000.0) == 10.0
    window = RateWindow(2, 10.0)
    for n in range(SWEEP):
        window.count(f"p{n}", 0.0)
    window.count("ann", 11.0)
    assert len(window) == 1
