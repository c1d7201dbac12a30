"""The tool gate: permission modes, approval, disabled tools."""

from __future__ import annotations

import asyncio
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
from tests.unit.agents.calling import call, failed, record, text

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
    """An approver that returns a verdict, by default yes, and records the requests."""

    def __init__(self, verdict: Verdict | None = None):
        self.verdict = verdict
        self.requests: list[ApprovalRequest] = []

    async def approve(self, call: ApprovalRequest) -> Verdict:
        self.requests.append(call)
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
def test_the_mode_decides_by_the_permission_of_a_tool() -> None:
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


@pytest.mark.behaviour("K-1", "H-90")
def test_confirm_requires_approval_in_every_mode_or_only_for_untrusted_turns() -> None:
    decision = decide(Subject("read", confirm=True), "full")
    assert isinstance(decision, NeedsApproval)
    assert "subject must be approved" in decision.reason
    cases: list[tuple[Confirm, bool, bool]] = [
        (False, False, False), (False, True, False), ("untrusted", False, False),
        ("untrusted", True, True), (True, False, True), (True, True, True),
    ]  # fmt: skip
    for confirm, untrusted, asks in cases:
        decision = decide(Subject("read", confirm), "full", untrusted=untrusted)
        assert isinstance(decision, NeedsApproval) is asks


def strictness(subject: Subject, mode: PermissionMode, *, untrusted: bool = False) -> int:
    return (Allow, NeedsApproval, Refuse).index(type(decide(subject, mode, untrusted=untrusted)))


@pytest.mark.behaviour("H-90")
@given(subjects, st.sampled_from(MODES))
def test_an_untrusted_turn_is_never_allowed_more(subject: Subject, mode: PermissionMode) -> None:
    assert strictness(subject, mode) <= strictness(subject, mode, untrusted=True)


@given(subjects)
def test_a_stricter_mode_never_allows_more(subject: Subject) -> None:
    full, ask, read_only = (strictness(subject, mode) for mode in ("full", "ask", "read_only"))
    assert full <= ask <= read_only


@pytest.mark.behaviour("K-1")
def test_a_mode_is_explained_to_the_model_and_hides_forbidden_tools() -> None:
    assert names("read_only") == {"look", "say", "finish"}
    assert names("ask") == names("full") == {"look", "pay", "close_shop", "burn", "say", "finish"}
    assert "change nothing" in permission_note("read_only")
    assert "approved" in permission_note("ask")
    assert permission_note("full") == ""


async def test_a_call_that_needs_approval_is_refused_without_an_approver() -> None:
    error = await failed(Toolbox(TOOLS, ToolPolicy(mode="ask")), "pay", amount=1)
    assert error["error"] == "needs_approval"
    assert "pay changes things (write)" in str(error["message"])
    assert "cannot be approved here" in str(error["message"])
    assert error["retry"] is False


async def test_the_operator_can_override_a_tools_permission_and_confirmation() -> None:
    overrides = {"look": ToolOverrides(permission="write"), "pay": ToolOverrides(permission="read")}
    box = Toolbox(TOOLS, ToolPolicy(mode="read_only", overrides=overrides))
    assert "look" not in box.names
    assert await text(box, "pay", amount=2) == "paid 2"
    overrides = {"look": ToolOverrides(confirm=True), "burn": ToolOverrides(confirm=False)}
    box = Toolbox(TOOLS, ToolPolicy(overrides=overrides))
    assert (await failed(box, "look"))["error"] == "needs_approval"
    assert await text(box, "burn", what="wood") == "burnt wood"


@pytest.mark.behaviour("K-2")
async def test_an_approval_request_has_all_details_of_the_call() -> None:
    ann = Person()
    box = Toolbox(TOOLS, ToolPolicy(approver=ann))
    assert await text(box, "burn", what="wood") == "burnt wood"
    (request,) = ann.requests
    assert (request.call_id, request.schema) == ("c", burn.spec.parameters)
    assert request.site == CallSite("bot-m1", 1, 0)
    assert (request.tool, request.description) == ("burn", "Burn something.")
    assert (request.permission, request.arguments) == ("write", {"what": "wood"})
    assert request.reason == "each call of burn must be approved by a person"


@pytest.mark.behaviour("K-2")
async def test_a_denied_call_fails_with_the_persons_reason() -> None:
    box = Toolbox(TOOLS, ToolPolicy(approver=Person(Denied("too dangerous"))))
    error = await failed(box, "burn", what="wood")
    assert error["error"] == "denied"
    assert "too dangerous" in str(error["message"])


async def test_a_person_can_change_the_arguments_which_are_checked_before_and_after() -> None:
    box = Toolbox(TOOLS, ToolPolicy(approver=Person(Approved({"what": "paper"}))))
    assert await text(box, "burn", what="wood") == "burnt paper"
    box = Toolbox(TOOLS, ToolPolicy(approver=Person(Approved({"what": 5}))))
    assert (await failed(box, "burn", what="wood"))["error"] == "invalid_arguments"
    ann = Person()
    box = Toolbox(TOOLS, ToolPolicy(approver=ann))
    assert (await failed(box, "burn", that="wood"))["error"] == "invalid_arguments"
    assert ann.requests == []


async def test_a_tools_timeout_does_not_run_while_a_person_decides() -> None:
    class Slow(Person):
        async def approve(self, call: ApprovalRequest) -> Verdict:
            decided = asyncio.Event()
            asyncio.get_running_loop().call_later(2 * timeout_s, decided.set)
            await decided.wait()
            return Approved(call.arguments)

    timeout_s = 0.1

    @tool(confirm=True, timeout=timeout_s)
    async def ring() -> str:
        """Ring a bell."""
        return "rung"

    assert await text(Toolbox([ring], ToolPolicy(approver=Slow())), "ring") == "rung"


async def resume_call(verdict: Verdict, *, idempotent: bool = False) -> CallResult:
    """The result of a call that a person was asked about, in a resumed turn."""
    done: list[str] = []

    @tool(permission="write", confirm=True, idempotent=idempotent)
    def burn(what: str) -> str:
        """Burn something."""
        done.append(what)
        return f"burnt {len(done)}"

    box = Toolbox([burn], ToolPolicy(approver=Person(verdict)))
    return await call(box, "burn", {"what": "wood"}, again=True)


@pytest.mark.behaviour("H-84", "H-85")
async def test_a_resumed_turn_runs_only_approved_calls_that_had_not_begun() -> None:
    begun: list[int] = []

    async def start() -> None:
        begun.append(1)

    async def already_used() -> None:
        raise ToolFailed("it was used", error="not_pending")

    result = await resume_call(Approved({"what": "wood"}, start))
    assert (result.result, begun) == ("burnt 1", [1])
    assert (await resume_call(Approved({"what": "wood"}))).error == "interrupted"
    assert (await resume_call(Begun({"what": "wood"}))).error == "interrupted"
    assert (await resume_call(Begun({"what": "wood"}), idempotent=True)).result == "burnt 1"
    assert (await resume_call(Approved({"what": "wood"}, already_used))).error == "not_pending"
    without_approver = Toolbox(TOOLS, ToolPolicy())
    result = await call(without_approver, "burn", {"what": "wood"}, again=True)
    assert result.error == "interrupted"


class TestParked:
    class Absent(Person):
        async def approve(self, call: ApprovalRequest) -> Verdict:
            raise Parked("a1")

    @pytest.mark.behaviour("H-80", "H-82")
    async def test_a_parked_call_has_no_result_and_does_not_count_as_a_success(self) -> None:
        box = Toolbox(TOOLS, ToolPolicy(approver=self.Absent()))
        result = await call(box, "burn", {"what": "x"})
        assert (result.parked, result.result, result.error) == (("a1",), "", None)
        calls = [record("burn", {"what": "x"}, "burn"), record("look", id="look")]
        burnt, seen = await box.run("bot-m1", 1, calls, calls, wait="any")
        assert (burnt.error, burnt.parked, seen.result) == ("cancelled", None, "seen")
        burnt, seen = await box.run("bot-m1", 1, calls, calls, wait="majority")
        assert (burnt.parked, seen.result) == (("a1",), "seen")

    @pytest.mark.behaviour("H-80")
    def test_a_call_that_may_need_approval_must_be_recorded_first(self) -> None:
        @tool(idempotent=True, confirm="untrusted")
        def settle() -> str:
            """Settle."""
            return ""

        calls = [record("settle")]
        assert Toolbox([settle]).must_be_recorded(calls)
        waived = ToolPolicy(overrides={"settle": ToolOverrides(confirm=False)})
        assert not Toolbox([settle], waived).must_be_recorded(calls)


@pytest.mark.behaviour("H-88")
async def test_a_result_is_untrusted_by_its_tool_unless_the_operator_overrides_it() -> None:
    @tool(untrusted=False)
    def add() -> str:
        """Add."""
        return "2"

    @tool(untrusted=False)
    def relay() -> str:
        """Relay text of others."""
        return UntrustedText("2")

    @tool
    def broken() -> str:
        """Fail with text of others."""
        raise ToolFailed("theirs")

    box = Toolbox([look, add, relay, broken, Speech()])
    untrusted = {name: (await call(box, name)).untrusted for name in box.names if name != "finish"}
    assert untrusted == {"look": True, "add": False, "relay": True, "broken": True, "say": False}
    overrides = {"look": ToolOverrides(untrusted=False), "say": ToolOverrides(untrusted=True)}
    box = Toolbox([look, Speech()], ToolPolicy(overrides=overrides))
    assert [(await call(box, n)).untrusted for n in ("look", "say")] == [False, True]
    box = Toolbox(TOOLS, ToolPolicy(approver=Person(Denied("no"))))
    assert not (await call(box, "burn", {"what": "x"})).untrusted


@pytest.mark.behaviour("K-3")
async def test_a_disabled_tool_is_neither_offered_nor_named_nor_callable() -> None:
    box = Toolbox(TOOLS, ToolPolicy(disabled=frozenset({"pay"})))
    assert "pay" not in box.names
    assert "pay" not in [spec.name for spec in box.specs]
    assert "pay" not in box.registry.summaries()
    assert "pay" not in box.registry.near("pay")
    error = await failed(box, "pay", amount=1)
    assert error["error"] == "unknown_tool"
    assert "pay" not in error.get("valid_names", [])  # type: ignore[operator]  # it is a list
    result = await call(box, "pay", {"amount": 1}, again=True)
    assert result.error == "unknown_tool"


class TestToolSource:
    class Source:
        """Tools that a test adds and removes."""

        def __init__(self, *tools: Tool):
            self.present = tools
            self.away: dict[str, str] = {}

        def tools(self) -> tuple[Tool, ...]:
            return self.present

        def absences(self) -> dict[str, str]:
            return self.away

    @pytest.mark.behaviour("K-1", "K-3")
    def test_a_turn_has_the_tools_present_at_its_start_the_agents_own_first(self) -> None:
        source = self.Source(look)
        box = Toolbox([], source=source)
        first = box.for_turn()
        source.present = (look, pay)
        second = box.for_turn()
        source.present = ()
        assert (first.names, second.names) == (("look", "finish"), ("look", "pay", "finish"))
        assert box.for_turn().names == ("finish",)
        source = self.Source(look, pay)
        box = Toolbox([look], source=source, always=[pay]).for_turn()
        assert box.names == ("look", "pay", "finish")
        tool_policy = ToolPolicy(mode="read_only", disabled=frozenset({"look"}))
        assert Toolbox([], tool_policy, source=self.Source(look, pay)).names == ("finish",)

    async def test_a_replaced_tool_is_checked_by_its_new_arguments(self) -> None:
        @tool(name="look")
        def look_closely(times: int) -> str:
            """Look closely."""
            return "seen" * times

        source = self.Source(look)
        box = Toolbox([], source=source)
        assert await text(box.for_turn(), "look") == "seen"
        source.present = (look_closely,)
        assert (await failed(box.for_turn(), "look"))["error"] == "invalid_arguments"
        assert await text(box.for_turn(), "look", times=2) == "seenseen"

    def test_each_turn_notes_absent_tools_once(self) -> None:
        source = self.Source()
        first = Toolbox([], source=source).for_turn()
        assert first.notes() == ()
        source.away["shop"] = "it has ended"
        assert first.notes() == ("the tools of shop are absent: it has ended",)
        assert first.notes() == ()
        assert len(first.for_turn().notes()) == 1


def test_the_registry_lists_tools_by_name_and_suggests_near_ones() -> None:
    registry = ToolRegistry(TOOLS)
    assert [s.name for s in registry.definitions(["say", "look", "none"])] == ["look", "say"]
    assert len(registry.definitions()) == len(registry) == 5
    cases: list[tuple[str, list[str]]] = [
        ("PAY", ["pay"]), ("shop", ["close_shop"]), ("zzz", []), ("", []),
    ]  # fmt: skip
    for word, near in cases:
        assert registry.near(word)[:1] == near


def test_a_summary_is_the_first_sentence_on_one_line() -> None:
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


def test_names_of_runtime_tools_cannot_be_used() -> None:
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
