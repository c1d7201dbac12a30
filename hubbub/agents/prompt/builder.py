"""A system prompt from named parts. Pure.

builder = default_builder()
builder.register(Component("style", lambda context: "Be brief.", priority=58))
builder.unregister("delegation")
text = builder.build(context)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from typing import NamedTuple, TypeAlias

from hubbub.agents.prompt.context import PromptContext

__all__ = ["Component", "Condition", "PromptBuilder", "Render", "Section"]

Render: TypeAlias = Callable[[PromptContext], str]
Condition: TypeAlias = Callable[[PromptContext], bool]

DEFAULT_PRIORITY = 50


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the prompt. One that renders to nothing, or whose condition fails, vanishes."""

    name: str
    render: Render
    priority: int = DEFAULT_PRIORITY
    """Higher stands first; equal ones stand in the order in which they were registered."""
    when: Condition | None = None
    """None: always."""


class Section(NamedTuple):
    """A component as it was rendered."""

    name: str
    text: str


class PromptBuilder:
    """Components, and the prompt that they make of a context."""

    def __init__(self, components: Iterable[Component] = ()):
        """Raises ValueError when two components have the same name."""
        self._components: dict[str, Component] = {}
        self.register_many(components)

    @property
    def names(self) -> tuple[str, ...]:
        """All names, in the order of the prompt."""
        return tuple(component.name for component in self._ordered())

    def __contains__(self, name: object) -> bool:
        return name in self._components

    def __getitem__(self, name: str) -> Component:
        """Raises ValueError, with the nearest name, when there is no such component."""
        if name not in self._components:
            near = get_close_matches(name, self._components, 1, 0.4)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"there is no component {name!r}{hint}")
        return self._components[name]

    def register(self, component: Component) -> None:
        """Add a component. Raises ValueError when its name is taken."""
        if component.name in self._components:
            raise ValueError(f"there is a component {component.name!r} already; replace it")
        self._components[component.name] = component

    def register_many(self, components: Iterable[Component]) -> None:
        """Add components, in this order. Raises ValueError, and adds none, when a name is taken."""
        added = dict(self._components)
        for component in components:
            if component.name in added:
                raise ValueError(f"there is a component {component.name!r} already; replace it")
            added[component.name] = component
        self._components = added

    def replace(self, component: Component) -> None:
        """Put a component in the place of the one with its name. Raises ValueError without one."""
        self[component.name]
        self._components[component.name] = component

    def unregister(self, name: str) -> Component:
        """Remove a component and return it. Raises ValueError when there is none of that name."""
        component = self[name]
        del self._components[name]
        return component

    def clone(self) -> PromptBuilder:
        """A builder with the same components; changing one leaves the other as it is."""
        return PromptBuilder(self._components.values())

    def sections(self, context: PromptContext) -> tuple[Section, ...]:
        """What the components have to say, in order; those that say nothing are left out."""
        rendered = (
            Section(component.name, component.render(context).strip())
            for component in self._ordered()
            if component.when is None or component.when(context)
        )
        return tuple(section for section in rendered if section.text)

    def build(self, context: PromptContext) -> str:
        """The prompt: the sections, with a blank line between them."""
        return "\n\n".join(section.text for section in self.sections(context))

    def _ordered(self) -> list[Component]:
        return sorted(self._components.values(), key=lambda component: -component.priority)
