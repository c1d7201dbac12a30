"""Other names that a model may use for tools, actions and arguments: `aliases` of an agent."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from hubbub.config.units import Section, wrong

__all__ = ["Aliases"]

Name = Annotated[str, Field(min_length=1, max_length=64)]

_STEP_ACTIONS = {"SEARCH_KNOWLEDGE": "search_knowledge", "SEND_MESSAGE": "send_text_message"}
_STEP_FIELDS = {
    "query_text": "query",
    "target_agent_id": "to",
    "message_text": "text",
    "context_summary": "context",
}
_PRESETS: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = MappingProxyType(
    {"step_actions": (_STEP_ACTIONS, _STEP_FIELDS)}
)


class Aliases(Section):
    """Names that stand for others, in every dialect. Actions of `final_output` are understood
    however they are spelled (`CALL_TOOLS_PARALLEL`), and need none."""

    preset: Literal["step_actions"] | None = None
    """Aliases that come along: step_actions has SEARCH_KNOWLEDGE, SEND_MESSAGE, `query_text`,
    `target_agent_id`, `message_text` and `context_summary`."""
    names: dict[Name, Name] = {}
    """Of tools and actions: `{SEARCH_DOCS: search_knowledge}`."""
    fields: dict[Name, Name] = {}
    """Of arguments: `{query_text: query}`. A tool that has such an argument itself is given it."""

    @property
    def all_names(self) -> dict[str, str]:
        """With those of the preset; own ones count first."""
        return {**self._preset[0], **self.names}

    @property
    def all_fields(self) -> dict[str, str]:
        """With those of the preset; own ones count first."""
        return {**self._preset[1], **self.fields}

    @property
    def _preset(self) -> tuple[Mapping[str, str], Mapping[str, str]]:
        return _PRESETS[self.preset] if self.preset is not None else ({}, {})

    @model_validator(mode="after")
    def _mean_one_thing(self) -> Self:
        for key, aliases in (("names", self.all_names), ("fields", self.all_fields)):
            for alias, meant in aliases.items():
                if meant in aliases:
                    what = f"'{alias}' in {key} stands for '{meant}', which is an alias itself"
                    raise wrong(f"{what}: say what it stands for, '{aliases[meant]}'")
        return self
