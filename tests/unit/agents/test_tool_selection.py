"""Two-stage selection: summaries of many tools until the model picks some."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import Tool
from hubbub.agents.tools.call_runner import SELECT_OVER, ToolPolicy
from hubbub.agents.tools.function import FunctionTool
from hubbub.agents.tools.policy import PermissionMode, Refuse, decide
from hubbub.agents.tools.registry import SELECT
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.protocol.messages import Permission
from hubbub.protocol.turns import Step
from tests.unit.agents.calling import call, called, failed, text


def made(name: str, permission: Permission = "read") -> Tool:
    def function(n: int = 0) -> str:
        return name

    function.__doc__ = f"Do {name}. It takes a number."
    return FunctionTool(function, name=name, permission=permission)


MANY = [made(f"tool_{n:02}") for n in range(SELECT_OVER + 1)]


def described(box: Toolbox, *steps: Step) -> list[str]:
    return [spec.name for spec in box.described(steps)]


def summary_lines(specs: tuple[ToolSpec, ...]) -> list[str]:
    (spec,) = [spec for spec in specs if spec.name == SELECT]
    return spec.description.splitlines()[1:]


@pytest.mark.behaviour("K-9")
def test_many_tools_are_summarised_in_a_line_each_until_the_model_picks() -> None:
    box = Toolbox(MANY)
    assert described(box) == ["finish", SELECT]
    assert summary_lines(box.specs)[:2] == ["tool_00: Do tool_00", "tool_01: Do tool_01"]
    assert len(summary_lines(box.specs)) == len(MANY)
    assert set(box.names) == {*(t.name for t in MANY), SELECT, "finish"}
    box = Toolbox(MANY)
    one = called(1, SELECT, names=["tool_07", "tool_03"])
    assert described(box, one) == ["finish", SELECT, "tool_07", "tool_03"]
    two = called(2, SELECT, names=["tool_20"])
    assert described(box, one, two) == ["finish", SELECT, "tool_07", "tool_03", "tool_20"]
    box = Toolbox(MANY)
    assert described(box, called(1, "tool_05")) == ["finish", SELECT, "tool_05"]
    box = Toolbox([*MANY, made("send_text_message", "write"), made("fork")])
    assert described(box) == ["send_text_message", "fork", "finish", SELECT]
    box = Toolbox(MANY[:SELECT_OVER])
    assert described(box) == [*(t.name for t in MANY[:SELECT_OVER]), "finish"]
    assert SELECT not in box.names


def test_a_failed_or_invalid_pick_selects_no_tool() -> None:
    box = Toolbox(MANY)
    open_ = called(1, SELECT, None, names=["tool_01"])
    failed_call = called(2, SELECT, names=["tool_02"]).calls[0]
    failed_step = Step(n=2, calls=(failed_call.model_copy(update={"error": "unknown_tool"}),))
    assert described(box, open_, failed_step) == ["finish", SELECT]
    cases: list[object] = ["tool_01", None, [1, {"a": 2}], {"tool_01": 1}]
    for names in cases:
        record = called(1, SELECT).calls[0].model_copy(update={"arguments": {"names": names}})
        assert described(Toolbox(MANY), Step(n=1, calls=(record,))) == ["finish", SELECT]


async def test_a_group_is_picked_as_a_whole_and_earlier_picks_stay_in_front() -> None:
    groups = {"even": ["tool_00", "tool_02"], "odd": ["tool_01"], "none": ["tool_99"]}
    box = Toolbox(MANY[:4], groups=groups, hidden=["tool_03"])
    assert described(box) == ["finish", SELECT]
    assert summary_lines(box.specs) == ["even: tool_00, tool_02", "odd: tool_01"]
    assert "['even', 'odd']" in str(box.specs[-1].offered)
    assert "tool_02" in await text(box, SELECT, names=["even"])
    one, two = called(1, SELECT, names=["even", "tool_01"]), called(2, "tool_03")
    names = ["finish", SELECT, "tool_00", "tool_02", "tool_01", "tool_03"]
    assert described(box, one, two) == names
    assert described(box.for_turn("tool_03")) == ["finish", SELECT, "tool_03"]
    assert await text(box, "tool_03", n=1) == "tool_03", "a hidden tool can still be called"


@pytest.mark.behaviour("K-9")
async def test_tools_are_picked_in_every_mode_and_unknown_names_get_suggestions() -> None:
    box = Toolbox(MANY)
    result_text = await text(box, SELECT, names=["tool_07", "tol_08"])
    assert "tool_07" in result_text
    assert "no tool 'tol_08'; near: tool_08" in result_text
    error = await failed(box, SELECT, names=["tol_08"])
    assert error["error"] == "unknown_tool"
    assert "tool_08" in error["valid_names"]  # type: ignore[operator]  # it is a list
    assert (await failed(box, SELECT))["error"] == "invalid_arguments"
    assert (await failed(box, SELECT, names=[]))["error"] == "invalid_arguments"
    many: list[JsonValue] = [tool.name for tool in MANY]
    assert (await failed(box, SELECT, names=many))["error"] == "invalid_arguments"
    assert await text(box, "tool_11", n=1) == "tool_11"
    result = await call(box, SELECT, {"names": ["tool_01"]}, again=True)
    assert result.error is None
    cases: list[PermissionMode] = [*get_args(PermissionMode)]
    for mode in cases:
        box = Toolbox(MANY, ToolPolicy(mode=mode))
        assert "tool_01" in await text(box, SELECT, names=["tool_01"])


names = st.sampled_from([f"tool_{n:02}" for n in range(30)] + ["finish", SELECT, "no_tool"])
steps = st.lists(
    st.builds(
        lambda name, picks: (name, picks), names | st.just(SELECT), st.lists(names, max_size=5)
    ),
    max_size=6,
)


@pytest.mark.behaviour("K-9", "K-3", "K-1")
@given(
    permissions=st.lists(st.sampled_from(["read", "write", "admin"]), min_size=1, max_size=30),
    mode=st.sampled_from(get_args(PermissionMode)),
    disabled=st.sets(names),
    over=st.integers(1, 30),
    history=steps,
)
def test_a_disabled_or_forbidden_tool_is_never_described(
    permissions: list[Permission],
    mode: PermissionMode,
    disabled: set[str],
    over: int,
    history: list[tuple[str, list[str]]],
) -> None:
    tools = [made(f"tool_{n:02}", permission) for n, permission in enumerate(permissions)]
    box = Toolbox(tools, ToolPolicy(mode=mode, disabled=frozenset(disabled), select_over=over))
    hidden = {t.name for t in tools if t.name in disabled or isinstance(decide(t, mode), Refuse)}
    recorded = [called(n, name, names=[*p]) for n, (name, p) in enumerate(history, 1)]
    for upto in range(len(recorded) + 1):
        specs = box.described(recorded[:upto])
        shown = {spec.name for spec in specs}
        descriptions = "\n".join(f"{spec.name} {spec.description}" for spec in specs)
        assert not hidden & shown
        assert not any(name in descriptions for name in hidden)
        assert shown <= set(box.names)
    assert not hidden & set(box.names)
    assert not any(name in hidden for near in hidden for name in box.registry.near(near))
