"""A system prompt from named components.

builder = default_builder()
builder.register(Component("style", "Be brief.", priority=58))
builder.register(Component("stock", stock_of, when=is_open))      functions of the turn's context
builder.unregister("delegation")
text = (await builder.awaited(context)).build(context)
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple, Self, TypeAlias

from hubbub.agents.prompt.context import PromptContext
from hubbub.agents.prompt.tokens import counter_for
from hubbub.agents.tools.results import cut_text
from hubbub.errors import ConfigError
from hubbub.user_code import describe_error
from hubbub.wording import did_you_mean

__all__ = ["Component", "Condition", "PromptBuilder", "PromptSection", "Render", "call_function"]

Render: TypeAlias = Callable[[PromptContext], str | Awaitable[str]]
Condition: TypeAlias = Callable[[PromptContext], bool | Awaitable[bool]]

DEFAULT_PRIORITY = 50


@dataclass(frozen=True, slots=True)
class Component:
    """A part of the prompt. It is left out if it renders to nothing or its condition is false."""

    name: str
    render: Render | str
    """Its text, or a function of the turn's context, which may be `async`."""
    priority: int = DEFAULT_PRIORITY
    """Higher comes first; equal ones stand in the order of their registration."""
    when: Condition | None = None
    """A function of the context, which may be `async`; None: always."""
    max_tokens: int | None = None
    """The rest is cut, and the turn's record says so. None: no limit."""

    async def awaited(self, context: PromptContext) -> Component:
        """The same with the results of `async` functions for this context."""
        component = self
        if inspect.iscoroutinefunction(self.when):
            holds = await call_function(self.when, context, f"the condition of {self._place}")
            component = replace(component, when=lambda _: bool(holds))
            if not holds:
                return replace(component, render="")
        if inspect.iscoroutinefunction(self.render):
            text = await call_function(self.render, context, self._place)
            component = replace(component, render=_text(text, self._place))
        return component

    def section(self, context: PromptContext) -> PromptSection | None:
        """Its text; None: nothing. Raises `ConfigError` where a function raises."""
        if self.when is not None:
            with _located(f"the condition of {self._place}"):
                holds = self.when(context)
            if not holds:
                return None
        if isinstance(self.render, str):
            rendered: object = self.render
        else:
            with _located(self._place):
                rendered = self.render(context)
        text = _text(rendered, self._place).strip()
        if not text:
            return None
        if self.max_tokens is not None:
            counter = counter_for(context.model)
            if (tokens := counter.count(text)) > self.max_tokens:
                return PromptSection(self.name, cut_text(text, self.max_tokens, counter), tokens)
        return PromptSection(self.name, text)

    @property
    def _place(self) -> str:
        return f"the prompt component {self.name!r}"


class PromptSection(NamedTuple):
    """A rendered component."""

    name: str
    text: str
    uncut: int = 0
    """Tokens before it was cut; 0: it was not."""


class PromptBuilder:
    """Components, and the prompt that they make for a context."""

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
            hint = did_you_mean(name, self._components)
            raise ValueError(f"there is no component {name!r}{hint}")
        return self._components[name]

    def register(self, component: Component) -> Self:
        """Add a component. Raises ValueError when its name is taken."""
        return self.register_many([component])

    def register_many(self, components: Iterable[Component]) -> Self:
        """Add components, in this order. Raises ValueError, and adds none, when a name is taken."""
        added = dict(self._components)
        for component in components:
            if component.name in added:
                raise ValueError(f"there is a component {component.name!r} already; replace it")
            added[component.name] = component
        self._components = added
        return self

    def replace(self, component: Component) -> Self:
        """Replace the component of the same name. Raises ValueError if there is none."""
        self[component.name]
        self._components[component.name] = component
        return self

    def unregister(self, name: str) -> Component:
        """Remove a component and return it. Raises ValueError if there is none."""
        component = self[name]
        del self._components[name]
        return component

    def clone(self) -> PromptBuilder:
        """A builder with the same components, which can be changed independently."""
        return PromptBuilder(self._components.values())

    async def awaited(self, context: PromptContext) -> PromptBuilder:
        """The same with the results of `async` functions. Raises `ConfigError` if one raises."""
        return PromptBuilder([await each.awaited(context) for each in self._components.values()])

    def sections(self, context: PromptContext) -> tuple[PromptSection, ...]:
        """The rendered components, in order, without empty ones.

        Raises `ConfigError` where a function raises, or is `async` and was not `awaited`.
        """
        rendered = (component.section(context) for component in self._ordered())
        return tuple(section for section in rendered if section is not None)

    def build(self, context: PromptContext) -> str:
        """The prompt: the sections, with a blank line between them."""
        return "\n\n".join(section.text for section in self.sections(context))

    def _ordered(self) -> list[Component]:
        return sorted(self._components.values(), key=lambda component: -component.priority)


async def call_function(
    function: Callable[[PromptContext], object], context: PromptContext, place: str
) -> object:
    """The result of a user's function, awaited if necessary. Raises `ConfigError`."""
    with _located(place):
        given = function(context)
        return await given if inspect.isawaitable(given) else given


@contextmanager
def _located(place: str) -> Iterator[None]:
    """Turn exceptions of a user's function into a `ConfigError` that names the place."""
    try:
        yield
    except ConfigError:
        raise  # it says where
    except Exception as exc:
        raise ConfigError(f"{place} raises {describe_error(exc)}") from exc


def _text(rendered: object, place: str) -> str:
    if isinstance(rendered, str):
        return rendered
    if inspect.iscoroutine(rendered):
        rendered.close()
        raise ConfigError(f"{place} gives a coroutine: write it as `async def`, not as a lambda")
    raise ConfigError(f"{place} gives {type(rendered).__name__}: let it return a text")
