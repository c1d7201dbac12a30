"""Names of tools in an agent's section: which can stand where."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pydantic import JsonValue

from hubbub.agents.tools.naming import given_names, wrong_names
from hubbub.config.agents import AgentConfig

OFFERED = ("send_text_message", "read_thread", "recall")


def config(**settings: JsonValue) -> AgentConfig:
    return AgentConfig.model_validate(settings)


MINE = {"tools.py:own": "mine"}


def told(own: Mapping[str, str] | None = MINE, /, **settings: JsonValue) -> list[str]:
    """What is wrong, each with its place."""
    found = wrong_names(config(**settings), OFFERED, own)
    return [f"{wrong.key} {wrong.at}: {wrong.message}" for wrong in found]


class TestWhatIsFine:
    def test_tools_that_there_are_or_may_be_can_be_named(self) -> None:
        cases: list[dict[str, JsonValue]] = [
            {"tools": ["recall", "finish", "ask_human", "tools.py:own"]},
            {"disabled_tools": ["recall", "mine", "ask_human", "decline", "tidy_steps"]},
            {"disabled_tools": ["fork"], "fork": {}},
            {"disabled_tools": ["search_knowledge"], "knowledge": {"folders": ["faq"]}},
            {"disabled_tools": ["load_skill"], "skills": ["skills"]},
            {"disabled_tools": ["shop_buy"], "mcp": ["shop"], "tool_settings": {"shop_x": {}}},
            {"begin_with": "shop_find", "mcp": ["shop"]},
            {"begin_with": "mine"},
            {"begin_with": "mine", "tools": ["tools.py:own"]},
            {"begin_with": "ask_human", "tools": ["recall"]},
            {"begin_with": "load_skill", "tools": ["recall"], "skills": ["skills"]},
            {"tool_settings": {"mine": {}, "recall": {}}},
            {"kind": "pipeline", "disabled_tools": ["decline", "recall"]},
            {"kind": "pipeline", "tool_settings": {"ask_agent": {"timeout": "5s"}}},
        ]
        for settings in cases:
            assert told(**settings) == []

        given: dict[str, JsonValue] = {"disabled_tools": ["x"], "tool_settings": {"y": {}}}
        assert told(None, **given) == []
        assert len(told(**given)) == 2
        assert told(None, tools=["recal"]) == [
            "tools 0: there is no tool 'recal'; did you mean 'recall'?"
        ], "a function is named by its place"

        assert given_names(config()) == set()
        assert given_names(config(fork={}, knowledge={"folders": ["a"]}, skills=["b"])) == {
            "fork",
            "search_knowledge",
            "load_skill",
        }
        assert given_names(config(kind="pipeline", skills=["b"])) == {"ask_agent", "answer_asker"}


class TestWhatIsNot:
    @pytest.mark.behaviour("K-3")
    def test_a_name_that_cannot_stand_there_or_go_is_told(self) -> None:
        cases: list[tuple[dict[str, JsonValue], str]] = [
            (
                {"disabled_tools": ["recall", "recal"]},
                "disabled_tools 1: there is no tool 'recal'; did you mean 'recall'?",
            ),
            (
                {"tool_settings": {"read_thred": {}}},
                "tool_settings read_thred: there is no tool 'read_thred'; "
                "did you mean 'read_thread'?",
            ),
            (
                {"disabled_tools": ["shop"], "mcp": ["shop"]},
                "disabled_tools 0: there is no tool 'shop'",
            ),
            (
                {"tools": ["shop_buy"], "mcp": ["shop"]},
                "tools 0: 'shop_buy' is a tool of the MCP server shop, and those come on top",
            ),
            (
                {"tool_settings": {"decline": {}}},
                "tool_settings decline: 'decline' is a tool of the runtime",
            ),
            (
                {"begin_with": "recall", "disabled_tools": ["recall"]},
                "begin_with None: 'recall' is disabled by disabled_tools",
            ),
            (
                {"tools": ["recall", "recall"]},
                "tools 1: there are two tools called 'recall'",
            ),
            (
                {"tools": ["tools.py:own", "other.py:own"]},
                "tools 1: there are two tools called 'mine'",
            ),
            (
                {"tools": ["tools.py:finish", "finish"]},
                "tools 0: there are two tools called 'finish'",
            ),
            (
                {"tools": ["tools.py:recall", "recall"]},
                "tools 1: there are two tools called 'recall'",
            ),
            ({"begin_with": "finish"}, "begin_with None: a turn that begins with 'finish' is over"),
            ({"begin_with": "recal"}, "begin_with None: there is no tool 'recal'"),
            (
                {"begin_with": "read_thread", "tools": ["recall", "tools.py:own"]},
                "begin_with None: 'read_thread' is none of this agent's `tools`",
            ),
            (
                {"begin_with": "mine", "tools": ["recall"]},
                "begin_with None: 'mine' is none of this agent's `tools`",
            ),
        ]
        for settings, message in cases:
            own = {**MINE, "other.py:own": "mine", "tools.py:finish": "finish"}
            own["tools.py:recall"] = "recall"
            (found,) = told(own, **settings)
            assert found.startswith(message)

        more: list[tuple[dict[str, JsonValue], str]] = [
            ({"disabled_tools": ["finish"]}, "it is how a turn ends"),
            ({"disabled_tools": ["use_tools"]}, "raise that instead"),
            (
                {"disabled_tools": ["ask_human"], "mode": "interactive"},
                "the mode interactive asks with it",
            ),
            ({"disabled_tools": ["ask_human"], "kind": "router"}, "of the kind router speaks"),
            ({"disabled_tools": ["answer_asker"], "kind": "pipeline"}, "speaks with it"),
            ({"disabled_tools": ["ask_agent"], "kind": "planner"}, "set `roles.targets` to []"),
        ]
        for settings, why in more:
            (found,) = told(**settings)
            assert "cannot be disabled" in found
            assert why in found
