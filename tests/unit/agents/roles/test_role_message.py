"""System prompts of roles."""

from __future__ import annotations

from pydantic import JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.prompt.builder import Component, PromptBuilder
from hubbub.agents.prompt.components import default_builder
from hubbub.agents.prompt.context import PromptContext
from hubbub.agents.prompt.system import SystemPrompt, SystemPrompts
from hubbub.agents.roles.context import role_prompts
from hubbub.agents.roles.pipeline import Kind
from hubbub.config.prompting import PromptConfig
from hubbub.protocol.turns import Role

CONTEXT = PromptContext(
    agent="bot", network="net", tools=[ToolSpec("x", "", {})], capabilities=["cooking"]
)


def system_of(
    role: Role, kind: Kind, builder: PromptBuilder, prompt: dict[str, JsonValue]
) -> SystemPrompt:
    prompts = SystemPrompts("Be kind.", builder, PromptConfig.model_validate(prompt))
    return role_prompts(prompts, role, kind, {}, "`x`", ["x", "finish"]).of(CONTEXT, "dm.ann.bot")


def test_roles_use_the_agents_own_components_and_examples() -> None:
    builder = default_builder()
    builder.register(Component("style", lambda context: "Be brief.", 97))
    made = system_of("planner", "pipeline", builder, {"reminder": ["Never guess."]})
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
    text = system_of("planner", "pipeline", builder, prompt).text
    assert "Tools are slow today." in text
    assert "Text that you write outside tool calls is not sent" not in text

    def example(tool: str) -> JsonValue:
        return {"incoming": f"with {tool}", "steps": [{"call": tool}, {"call": "finish"}]}

    prompt = {"examples": [example("x"), example("y")]}
    text = system_of("router", "router", default_builder(), prompt).text
    assert "with x" in text
    assert "with y" not in text
