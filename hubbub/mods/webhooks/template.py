"""Templates of users, which make a text from the JSON that a program elsewhere has sent.

They run in a sandbox. What they put in from outside mentions nobody: an `@name` wakes an agent only
where it stands in the template itself.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from jinja2 import TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import JsonValue

from hubbub.config.units import wrong

__all__ = ["MOST_CHARACTERS", "CannotRender", "checked", "rendered"]

MOST_CHARACTERS = 30_000
"""Of a text; more is cut."""
_BY_ITSELF = "{{ body.text if body.text is string else body | json }}"
_JOINER = "\u2060"
"""Has no width, and ends a name."""


class CannotRender(Exception):
    """The template fails on what was sent. The text says why."""


def _harmless(value: object) -> object:
    return value.replace("@", f"@{_JOINER}") if isinstance(value, str) else value


def _json(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


# Mail, chat and logs take text, not HTML: nothing is escaped.
_ENVIRONMENT = ImmutableSandboxedEnvironment(finalize=_harmless, autoescape=False)
_ENVIRONMENT.filters["json"] = _json


def checked(template: str) -> str:
    """The template. Raises what pydantic takes for a mistake of the user."""
    try:
        _ENVIRONMENT.parse(template)
    except TemplateSyntaxError as error:
        raise wrong(f"the template does not parse: line {error.lineno}: {error.message}") from error
    except (MemoryError, RecursionError):
        raise wrong("the template is nested too deeply") from None
    return template


def rendered(template: str | None, given: Mapping[str, JsonValue]) -> str:
    """The text, without blanks at both ends. Raises `CannotRender`."""
    try:
        made = _ENVIRONMENT.from_string(template or _BY_ITSELF).render(given).strip()
    except (TemplateError, TypeError, ValueError, ArithmeticError, LookupError) as error:
        raise CannotRender(f"{type(error).__name__}: {error}") from error
    except (MemoryError, RecursionError, AttributeError) as error:
        raise CannotRender(type(error).__name__) from error
    return made if len(made) <= MOST_CHARACTERS else f"{made[: MOST_CHARACTERS - 1]}…"
