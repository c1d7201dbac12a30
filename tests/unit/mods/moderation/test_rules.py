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


def judge(content: JsonValue, *rules: dict[str, Any], **draft: Any) -> Verdict:
    return mod(*rules).on_message(DRAFT.replace(content=content, **draft))


def said(verdict: Verdict) -> JsonValue:
    assert isinstance(verdict, Replace), verdict
    return verdict.draft.content


# Patterns ---------------------------------------------------------------------------------------


@pytest.mark.behaviour("M-243")
def test_what_a_pattern_matches_is_refused_or_masked() -> None:
    rule = {"regex": r"\d{3}-\d{4}", "name": "phone"}
    assert judge("call 555-1234", rule) == Reject("the text violates the rule 'phone'")
    assert judge("call me", rule) is PASS
    assert said(judge("call 555-1234!", {**rule, "action": "mask"})) == "call ********!"
    masked = {**rule, "action": "mask", "replacement": "[number]"}
    assert said(judge(["555-1234", {"a": "555\u200b-1234"}], masked)) == [
        "[number]",
        {"a": "[number]"},
    ]
    assert judge("555-1234", {**rule, "reason": "no numbers"}) == Reject("no numbers")


@pytest.mark.behaviour("M-243")
def test_quotes_and_names_of_attachments_are_judged_too() -> None:
    rule = {"regex": "(?i)darn", "action": "mask"}
    verdict = judge(
        "fine", rule,
        quote=Quote(message_id="m1", text="Darn"),
        attachments=(Attachment(name="darn.txt", uri="file:1"),),
    )  # fmt: skip
    assert isinstance(verdict, Replace)
    assert verdict.draft.quote == Quote(message_id="m1", text="****")
    assert verdict.draft.attachments == (Attachment(name="****.txt", uri="file:1"),)


@pytest.mark.behaviour("M-244")
def test_a_pattern_without_end_is_given_up_and_the_message_refused() -> None:
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
def test_a_pattern_that_cannot_be_used_is_refused_with_its_place() -> None:
    counted = (  # repetitions within each other are seen through blanks and comments
        "(a{50}){50}{50}",
        "(((a{50}){50}){50}){50}",
        "(?:(?:a{70}){70}){70}",
        "(?x)(?:(?:a {70}) {70}) {70}",
        "(?x)(?:(?:a{70}) # so often\n{70}) # and so often\n {70}",
        r"(?x)[#](?:(?:\ {70}) {70}) {70}",
    )
    for pattern in ("(", "[a", "(?P<1>x)", "a*", "(" * 450, "x" * 501, *counted):
        settings: dict[str, JsonValue] = {"rules": [{"words": ["x"]}, {"regex": pattern}]}
        with pytest.raises(UserError, match=r"^mods\.moderation\.rules\.1\.regex: ") as caught:
            settings_of(Moderation, settings)
        assert pattern not in counted or "counted repetitions" in str(caught.value), pattern
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
def test_links_lead_only_where_they_may() -> None:
    rule: dict[str, Any] = {"links": {"allow": ["example.org", "Bücher.example"]}}
    for fine in (
        "https://docs.example.org/x",
        "see example.org:443",
        "http://BÜCHER.example",
        "hi",
    ):
        assert judge(fine, rule) is PASS, fine
    for wrong in ("https://evilexample.org", "https://example.org@evil.com", "https://examp1e.org"):
        assert judge(wrong, rule) == Reject("a link leads to a domain that is not allowed")
    masked = {**rule, "action": "mask"}
    assert said(judge("see https://evil.com/x?y.", masked)) == "see [link removed]."
    assert judge("hi", rule, attachments=(Attachment(name="x", uri="https://evil.com"),)) != PASS
    assert judge("hi", rule, attachments=(Attachment(name="x", uri="file:abc"),)) is PASS


@pytest.mark.behaviour("M-241")
def test_links_to_denied_domains_are_refused() -> None:
    rule = {"links": {"deny": ["evil.com", "127.0.0.1"]}}
    assert judge("https://good.com", rule) is PASS
    assert judge("https://a.EVIL.com.", rule) != PASS
    assert judge("http://2130706433/", rule) != PASS
    assert judge("any example.org", {"links": {"allow": []}}) != PASS


# Length, scope ----------------------------------------------------------------------------------


@pytest.mark.behaviour("M-240")
def test_all_strings_of_content_count_for_its_length() -> None:
    rule = {"max_length": 5}
    assert judge({"ab": ["cd", "e", 12345678]}, rule) is PASS
    assert judge({"ab": ["cd", "ef"]}, rule) == Reject("the text has 6 characters; the limit is 5")
    assert judge({"ab": 1}, rule, text_representation="12345") is PASS
    assert judge({"ab": 1}, rule, text_representation="123456") != PASS


@pytest.mark.behaviour("M-245")
def test_a_rule_concerns_those_that_it_names() -> None:
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
    for scope, concerns in scopes:
        assert (judge("darn", {**rule, **scope}) != PASS) == concerns, scope
    exempt = {**rule, "exempt": ["ann"]}
    speaks: Any = {"sender_kind": "agent"}
    assert judge("darn", exempt, sender_id="bot", sent_by="ann", **speaks) is PASS
    assert judge("darn", exempt, sender_id="ann", sent_by="bob", **speaks) != PASS
    assert judge("darn", rule, sender_kind="system") is PASS  # but by secrets


@pytest.mark.behaviour("M-245")
def test_wrong_settings_are_told_with_their_place() -> None:
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
def test_the_window_slides() -> None:
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
    window = RateWindow(2, 10.0)  # who is silent is forgotten
    for n in range(SWEEP):
        window.count(f"p{n}", 0.0)
    window.count("ann", 11.0)
    assert len(window) == 1
