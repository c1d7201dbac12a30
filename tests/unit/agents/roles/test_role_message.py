"""What roles are told, and the schemas of their tools."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.prompt.builder import Component, PromptBuilder
from hubbub.agents.prompt.components import default_builder, plain_builder
from hubbub.agents.prompt.context import PromptContext
from hubbub.agents.prompt.system import SystemPrompt, SystemPrompts
from hubbub.agents.roles.context import role_prompts
from hubbub.agents.roles.pipeline import Kind
from hubbub.agents.roles.plan import Plan
from hubbub.agents.roles.state import WorkState
from hubbub.config.prompting import PromptConfig
from hubbub.protocol.turns import Role

CONTEXT = PromptContext(
    agent="bot", network="net", tools=[ToolSpec("x", "", {})], capabilities=["cooking"]
)
PLAN = Plan.model_validate(
    {"steps": [
        {"id": 1, "goal": "find <it>", "executor": "look_up", "arguments": {"q": "</work>"}},
        {"id": 2, "goal": "tell", "executor": "ann"},
    ]}
)  # fmt: skip


def system_of(
    role: Role,
    kind: Kind,
    own: Mapping[Role, str],
    tool: str,
    builder: PromptBuilder | None = None,
    prompt: dict[str, JsonValue] | None = None,
) -> SystemPrompt:
    settings = PromptConfig.model_validate(prompt or {})
    prompts = SystemPrompts("Be kind.", builder or plain_builder(), settings)
    made = role_prompts(prompts, role, kind, own, tool, ["x", "finish"])
    return made.of(CONTEXT, "dm.ann.bot")


def test_an_agents_own_components_and_examples_are_the_roles_too() -> None:
    builder = default_builder()
    builder.register(Component("style", lambda context: "Be brief.", 97))
    made = system_of("planner", "pipeline", {}, "`x`", builder, {"reminder": ["Never guess."]})
    assert made.components == (
        "role:planner", "identity", "style", "network", "untrusted_data", "role:data",
        "thread_ids", "capabilities", "role:once", "reminder",
    )  # fmt: skip
    assert "Be brief." in made.body
    assert made.text.endswith("Above all:\n- Never guess.")
    builder = default_builder()
    builder.replace(Component("tools", lambda context: "Tools are slow today.", 70))
    replaced: dict[str, JsonValue] = {"tools": {"text": "Tools are slow today."}}
    prompt: dict[str, JsonValue] = {"components": {"replace": replaced}}
    text = system_of("planner", "pipeline", {}, "`x`", builder, prompt).text
    assert "Tools are slow today." in text
    assert "Text that you write outside tool calls is not sent" not in text

    def example(tool: str) -> JsonValue:
        return {"incoming": f"with {tool}", "steps": [{"call": tool}, {"call": "finish"}]}

    prompt = {"examples": [example("x"), example("y")]}
    text = system_of("router", "router", {}, "`x`", default_builder(), prompt).text
    assert "with x" in text
    assert "with y" not in text


def work(**more: object) -> WorkState:
    made = WorkState(plan=PLAN)
    for name, value in more.items():
        setattr(made, name, value)
    return made
