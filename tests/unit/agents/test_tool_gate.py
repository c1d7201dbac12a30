"""The tool gate: permission modes, approval, disabled tools."""

from __future__ import annotations

from asyncio import sleep
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub import tool
from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.approval import ApprovalRequest, Approved, Begun, Denied, Parked, Verdict
from hubbub.agents.tools.base import CallSite, Confirm, Tool, ToolFailed, UntrustedText
from hubbub.agents.tools.call_runner import ToolPolicy
from hubbub.agents.tools.policy import (
    Allow,
    NeedsApproval,
    PermissionMode,
    Refuse,
    ToolOverrides,
    decide,
    permission_note,
)
from hubbub.agents.tools.registry import ToolRegistry
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.agents.turn.loop import CallResult
from hubbub.protocol.messages import Permission
from hubbub.protocol.turns import ToolCallRecord
from tests.unit.agents.calling import call, failed, text

MODES: tuple[PermissionMode, ...] = get_args(PermissionMode)


@dataclass
class Subject:
    permission: Permission = "read"
    confirm: Confirm = False
    speaks: bool = False
    name: str = "subject"


subjects = st.builds(
    Subject,
    st.sampled_from(["read", "write", "admin"]),
    st.sampled_from([False, True, "untrusted"]),
    st.booleans(),
)


class Person:
    """An approver that says what it is told to, and remembers what it was asked."""

    def __init__(self, verdict: Verdict | None = None):
        self.verdict = verdict
        self.asked: list[ApprovalRequest] = []

    async def approve(self, call: ApprovalRequest) -> Verdict:
        self.asked.append(call)
        return self.verdict or Approved(call.arguments)


class Speech:
    """A tool that sends a message."""

    permission: Permission = "write"
    confirm = False
    idempotent = True
    ordered = True
    speaks = True
    timeout = None
    name = "say"
    spec = ToolSpec("say", "Say something.", {"type": "object", "properties": {}})

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        return "said"


@tool
def look() -> str:
    """Look at something."""
    return "seen"


@tool(permission="write")
def pay(amount: int) -> str:
    """Pay an amount."""
    return f"paid {amount}"


@tool(permission="admin")
def close_shop() -> str:
    """Close the shop."""
    return "closed"


@tool(permission="write", confirm=True)
def burn(what: str) -> str:
    """Burn something."""
    return f"burnt {what}"


TOOLS: list[Tool] = [look, pay, close_shop, burn, Speech()]


def names(mode: PermissionMode) -> set[str]:
    return set(Toolbox(TOOLS, ToolPolicy(mode=mode)).names)


@pytest.mark.behaviour("K-1", "H-90")
def test_the_mode_decides_by_what_a_tool_does_and_confirm_asks_in_every_mode() -> None:
    cases: list[tuple[Permission, type, type, type]] = [
        ("read", Allow, Allow, Allow),
        ("write", Refuse, NeedsApproval, Allow),
        ("admin", Refuse, NeedsApproval, Allow),
    ]
    for permission, read_only, ask, full in cases:
        decisions = [type(decide(Subject(permission), mode)) for mode in MODES]
        assert decisions == [read_only, ask, full]
    assert {type(decide(Subject("write", speaks=True), mode)) for mode in MODES} == {Allow}
    assert isinstance(decide(Subject("admin", speaks=True), "read_only"), Refuse)
    decision = decide(Subject("read", confirm=True), "full")
    assert isinstance(decision, NeedsApproval)
    assert "subject must be approved" in decision.reason
    more: list[tuple[Confirm, bool, bool]] = [
        (False, False, False), (False, True, False), ("untrusted", False, False),
        ("untrusted", True, True), (True, False, True), (True, True, True),
    ]  # fmt: skip
    for confirm, untrusted, asks in more:
        decision = decide(Subject("read", confirm), "full", untrusted=untrusted)
        assert isinstance(decision, NeedsApproval) is asks


@pytest.mark.behaviour("H-90")
@given(subjects, st.sampled_from(MODES))
def test_a_turn_that_has_read_something_from_outside_is_never_allowed_more(
    subject: Subject, mode: PermissionMode
) -> None:
    strictness = {Allow: 0, NeedsApproval: 1, Refuse: 2}
    clean, untrusted = (
        strictness[type(decide(subject, mode, untrusted=untrusted))] for untrusted in (False, True)
    )
    assert clean <= untrusted


@given(subjects)
def test_a_stricter_mode_never_allows_more(subject: Subject) -> None:
    strictness = {Allow: 0, NeedsApproval: 1, Refuse: 2}
    full, ask, read_only = (
        strictness[type(decide(subject, mode))] for mode in ("full", "ask", "read_only")
    )
    assert full <= ask <= read_only


@pytest.mark.behaviour("K-1")
def test_a_mode_is_told_to_the_model_and_its_forbidden_tools_are_not_there() -> None:
    assert names("read_only") == {"look", "say", "finish"}
    assert names("ask") == names("full") == {"look", "pay", "close_shop", "burn", "say", "finish"}
    assert "change nothing" in permission_note("read_only")
    assert "approved" in permission_note("ask")
    assert permission_note("full") == ""


async def test_what_needs_approval_is_refused_where_nobody_can_be_asked() -> None:
    permission_note = await failed(Toolbox(TOOLS, ToolPolicy(mode="ask")), "pay", amount=1)
    assert permission_note["error"] == "needs_approval"
    assert "pay changes things (write)" in str(permission_note["message"])
    assert "cannot be approved here" in str(permission_note["message"])
    assert permission_note["retry"] is False


async def test_the_operator_may_say_what_a_tool_does_and_demand_or_waive_approval() -> None:
    tool_policy = ToolPolicy(
        mode="read_only", overrides={"look": ToolOverrides(permission="write")}
    )
    assert "look" not in Toolbox(TOOLS, tool_policy).names
    tool_policy = ToolPolicy(mode="read_only", overrides={"pay": ToolOverrides(permission="read")})
    assert await text(Toolbox(TOOLS, tool_policy), "pay", amount=2) == "paid 2"
    tool_policy = ToolPolicy(
        overrides={"look": ToolOverrides(confirm=True), "burn": ToolOverrides(confirm=False)}
    )
    box = Toolbox(TOOLS, tool_policy)
    assert (await failed(box, "look"))["error"] == "needs_approval"
    assert await text(box, "burn", what="wood") == "burnt wood"


@pytest.mark.behaviour("K-2")
async def test_a_person_is_asked_with_all_that_they_must_know() -> None:
    ann = Person()
    box = Toolbox(TOOLS, ToolPolicy(approver=ann))
    assert await text(box, "burn", what="wood") == "burnt wood"
    (asked,) = ann.asked
    assert (asked.call_id, asked.schema) == ("c", burn.spec.parameters)
    assert asked.site == CallSite("bot-m1", 1, 0)
    assert (asked.tool, asked.description) == ("burn", "Burn something.")
    assert (asked.permission, asked.arguments) == ("write", {"what": "wood"})
    assert asked.reason == "each call of burn must be approved by a person"


@pytest.mark.behaviour("K-2")
async def test_a_persons_no_is_told_with_the_reason() -> None:
    box = Toolbox(TOOLS, ToolPolicy(approver=Person(Denied("too dangerous"))))
    permission_note = await failed(box, "burn", what="wood")
    assert permission_note["error"] == "denied"
    assert "too dangerous" in str(permission_note["message"])


async def test_a_person_may_change_the_arguments_which_are_checked_before_and_after() -> None:
    box = Toolbox(TOOLS, ToolPolicy(approver=Person(Approved({"what": "paper"}))))
    assert await text(box, "burn", what="wood") == "burnt paper"
    box = Toolbox(TOOLS, ToolPolicy(approver=Person(Approved({"what": 5}))))
    assert (await failed(box, "burn", what="wood"))["error"] == "invalid_arguments"
    ann = Person()
    box = Toolbox(TOOLS, ToolPolicy(approver=ann))
    assert (await failed(box, "burn", that="wood"))["error"] == "invalid_arguments"
    assert ann.asked == []


async def test_the_tools_time_does_not_run_while_a_person_thinks() -> None:
    class Slow(Person):
        async def approve(self, call: ApprovalRequest) -> Verdict:
            for _ in range(100):
                await sleep(0)
            return Approved(call.arguments)

    tool_policy = ToolPolicy(approver=Slow(), overrides={"burn": ToolOverrides(timeout=10)})
    assert await text(Toolbox(TOOLS, tool_policy), "burn", what="wood") == "burnt wood"


class TestAgain:
    """Calls that a person was asked about, in a turn that is taken up again."""

    async def once_more(self, verdict: Verdict, *, idempotent: bool = False) -> CallResult:
        done: list[str] = []

        @tool(permission="write", confirm=True, idempotent=idempotent)
        def burn(what: str) -> str:
            """Burn something."""
            done.append(what)
            return f"burnt {len(done)}"

        box = Toolbox([burn], ToolPolicy(approver=Person(verdict)))
        return await call(box, "burn", {"what": "wood"}, again=True)

    @pytest.mark.behaviour("H-84", "H-85")
    async def test_one_that_was_approved_and_has_not_begun_runs_and_no_other(self) -> None:
        begun: list[int] = []

        async def start() -> None:
            begun.append(1)

        result = await self.once_more(Approved({"what": "wood"}, start))
        assert (result.result, begun) == ("burnt 1", [1])
        assert (await self.once_more(Approved({"what": "wood"}))).error == "interrupted"
        assert (await self.once_more(Begun({"what": "wood"}))).error == "interrupted"
        again = await self.once_more(Begun({"what": "wood"}), idempotent=True)
        assert again.result == "burnt 1"

        async def used() -> None:
            raise ToolFailed("it was used", error="not_pending")

        assert (await self.once_more(Approved({"what": "wood"}, used))).error == "not_pending"
        box = Toolbox(TOOLS, ToolPolicy())
        assert (await call(box, "burn", {"what": "wood"}, again=True)).error == "interrupted"


class TestParked:
    class Absent(Person):
        async def approve(self, call: ApprovalRequest) -> Verdict:
            self.asked.append(call)
            raise Parked("a1")

    @pytest.mark.behaviour("H-80", "H-82")
    async def test_a_call_that_waits_for_a_person_has_no_result_and_is_no_success(self) -> None:
        result = await call(
            Toolbox(TOOLS, ToolPolicy(approver=self.Absent())), "burn", {"what": "x"}
        )
        assert (result.parked, result.result, result.error) == (("a1",), "", None)
        box = Toolbox(TOOLS, ToolPolicy(approver=self.Absent()))
        names = [("burn", {"what": "x"}), ("look", {})]
        calls = [ToolCallRecord(id=n, name=n, arguments=a) for n, a in names]
        burnt, seen = await box.run("bot-m1", 1, calls, calls, wait="any")
        assert (burnt.error, burnt.parked, seen.result) == ("cancelled", None, "seen")
        burnt, seen = await box.run("bot-m1", 1, calls, calls, wait="majority")
        assert (burnt.parked, seen.result) == (("a1",), "seen")

    @pytest.mark.behaviour("H-80")
    def test_what_people_may_be_asked_about_is_on_record_before(self) -> None:
        @tool(idempotent=True, confirm="untrusted")
        def settle() -> str:
            """Settle."""
            return ""

        calls = [ToolCallRecord(id="c", name="settle", arguments={})]
        assert Toolbox([settle]).must_be_recorded(calls)
        waived = ToolPolicy(overrides={"settle": ToolOverrides(confirm=False)})
        assert not Toolbox([settle], waived).must_be_recorded(calls)


@pytest.mark.behaviour("H-88")
async def test_a_result_says_whether_it_is_from_outside_and_the_operator_has_the_last_word() -> (
    None
):
    @tool(untrusted=False)
    def add() -> str:
        """Add."""
        return "2"

    @tool(untrusted=False)
    def relay() -> str:
        """Hand on what may be from outside."""
        return UntrustedText("2")

    @tool
    def broken() -> str:
        """Fail with words of somebody else."""
        raise ToolFailed("theirs")

    box = Toolbox([look, add, relay, broken, Speech()])
    found = {n: (await call(box, n)).untrusted for n in ("look", "add", "relay", "broken", "say")}
    assert found == {"look": True, "add": False, "relay": True, "broken": True, "say": False}
    overrides = {"look": ToolOverrides(untrusted=False), "say": ToolOverrides(untrusted=True)}
    box = Toolbox([look, Speech()], ToolPolicy(overrides=overrides))
    assert [(await call(box, n)).untrusted for n in ("look", "say")] == [False, True]
    box = Toolbox(TOOLS, ToolPolicy(approver=Person(Denied("no"))))
    assert not (await call(box, "burn", {"what": "x"})).untrusted


@pytest.mark.behaviour("K-3")
async def test_a_disabled_tool_is_nowhere() -> None:
    box = Toolbox(TOOLS, ToolPolicy(disabled=frozenset({"pay"})))
    assert "pay" not in box.names
    assert "pay" not in [spec.name for spec in box.specs]
    assert "pay" not in box.registry.summaries()
    assert "pay" not in box.registry.near("pay")
    permission_note = await failed(box, "pay", amount=1)
    assert permission_note["error"] == "unknown_tool"
    assert "pay" not in permission_note.get("valid_names", [])  # type: ignore[operator]  # it is a list
    box = Toolbox(TOOLS, ToolPolicy(disabled=frozenset({"pay"})))
    result = await call(box, "pay", {"amount": 1}, again=True)
    assert result.error == "unknown_tool"


class TestComingAndGoing:
    class Source:
        """Tools that a test adds and takes away."""

        def __init__(self, *tools: Tool):
            self.here = tools
            self.away: dict[str, str] = {}

        def tools(self) -> tuple[Tool, ...]:
            return self.here

        def absences(self) -> dict[str, str]:
            return self.away

    @pytest.mark.behaviour("K-1", "K-3")
    def test_a_turn_has_the_tools_that_there_are_when_it_begins_the_agents_own_first(self) -> None:
        source = self.Source(look)
        box = Toolbox([], source=source)
        first = box.for_turn()
        source.here = (look, pay)
        second = box.for_turn()
        source.here = ()
        assert (first.names, second.names) == (("look", "finish"), ("look", "pay", "finish"))
        assert box.for_turn().names == ("finish",)
        source = self.Source(look, pay)
        box = Toolbox([look], source=source, always=[pay]).for_turn()
        assert box.names == ("look", "pay", "finish")
        tool_policy = ToolPolicy(mode="read_only", disabled=frozenset({"look"}))
        assert Toolbox([], tool_policy, source=self.Source(look, pay)).names == ("finish",)

    async def test_one_that_comes_back_with_other_arguments_is_checked_by_those(self) -> None:
        @tool(name="look")
        def look_closely(times: int) -> str:
            """Look closely."""
            return "seen" * times

        source = self.Source(look)
        box = Toolbox([], source=source)
        assert await text(box.for_turn(), "look") == "seen"
        source.here = (look_closely,)
        assert (await failed(box.for_turn(), "look"))["error"] == "invalid_arguments"
        assert await text(box.for_turn(), "look", times=2) == "seenseen"

    def test_each_turn_is_told_once_what_is_away(self) -> None:
        source = self.Source()
        first = Toolbox([], source=source).for_turn()
        assert first.notes() == ()
        source.away["shop"] = "it has ended"
        assert first.notes() == ("the tools of shop are absent: it has ended",)
        assert first.notes() == ()
        assert len(first.for_turn().notes()) == 1


def test_tools_are_found_by_name_permission_or_a_near_name() -> None:
    registry = ToolRegistry(TOOLS)
    assert [s.name for s in registry.definitions(["say", "look", "none"])] == ["look", "say"]
    assert len(registry.definitions()) == len(registry) == 5
    cases: list[tuple[str, list[str]]] = [
        ("PAY", ["pay"]), ("shop", ["close_shop"]), ("zzz", []), ("", []),
    ]  # fmt: skip
    for word, near in cases:
        assert ToolRegistry(TOOLS).near(word)[:1] == near


def test_summaries_are_the_first_sentence_on_one_line() -> None:
    @tool
    def long() -> str:
        """Do the first
        thing. Then do the second.

        And more.
        """
        return ""

    @tool
    def longer() -> str:
        """Say aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa
        bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"""
        return ""

    summaries = ToolRegistry([long, longer]).summaries()
    assert summaries["long"] == "Do the first thing"
    assert len(summaries["longer"]) == 120
    assert summaries["longer"].endswith("…")


def test_names_of_the_runtime_are_taken() -> None:
    cases: list[Literal["finish", "use_tools"]] = ["finish", "use_tools"]
    for name in cases:

        @tool(name=name)
        def own() -> str:
            """Mine."""
            return ""

        with pytest.raises(ValueError, match=f"two tools called '{name}'"):
            ToolRegistry([own])
    with pytest.raises(ValueError, match="'look' is the name of a tool that every agent has"):
        ToolRegistry([look], runtime=[look])
