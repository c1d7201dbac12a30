"""`@tool`: a typed Python function as a tool.

@tool(idempotent=True)
def word_count(text: Annotated[str, "what to count in"], ignore_case: bool = True) -> int:
    '''Count the different words of a text.'''
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, ParamSpec, TypeVar, overload

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_json

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import CallSite
from hubbub.agents.tools.docstrings import describe
from hubbub.agents.tools.schema import Arguments
from hubbub.agents.tools.threads import run_in_thread
from hubbub.protocol.messages import Permission

__all__ = ["FunctionTool", "tool"]

P = ParamSpec("P")
R = TypeVar("R")


class FunctionTool(Generic[P, R]):
    """A function that models may call; Python code calls it as before."""

    ordered = False
    speaks = False

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        permission: Permission = "read",
        confirm: bool = False,
        idempotent: bool = False,
        timeout: float | None = None,
    ):
        functools.update_wrapper(self, function)
        self._function = function
        description, parameters = describe(function)
        if not description:
            raise TypeError(
                f"{function.__name__}: a tool needs a docstring, it is what models read"
            )
        self._arguments = Arguments(function, parameters)
        self.spec = ToolSpec(name or function.__name__, description, self._arguments.schema)
        self.permission, self.confirm = permission, confirm
        self.idempotent, self.timeout = idempotent, timeout

    @property
    def name(self) -> str:
        return self.spec.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Call the function: in the loop if it is async, else in a thread."""
        given = self._arguments.validate(arguments)
        function: Callable[..., object] = self._function
        call = functools.partial(function, **given)
        if inspect.iscoroutinefunction(self._function):
            result = call()
        else:
            result = await run_in_thread(call)
        if isinstance(result, Awaitable):
            result = await result
        return _as_text(result)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    permission: Permission = "read",
    confirm: bool = False,
    idempotent: bool = False,
    timeout: float | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    permission: Permission = "read",
    confirm: bool = False,
    idempotent: bool = False,
    timeout: float | None = None,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a function a tool. Its signature becomes the JSON Schema, its docstring the description.

    name        what models call it; the function's name if left out
    permission  read, write or admin: what it does to the world
    confirm     a person must approve each call
    idempotent  running it twice does no more than once: it may be repeated after a crash
    timeout     seconds after which the call counts as failed

    Raises TypeError when the docstring or an annotation is missing.
    """

    def declare(declared: Callable[P, R]) -> FunctionTool[P, R]:
        return FunctionTool(
            declared,
            name=name,
            permission=permission,
            confirm=confirm,
            idempotent=idempotent,
            timeout=timeout,
        )

    return declare if function is None else declare(function)


def _as_text(result: object) -> str:
    if isinstance(result, str):
        return result
    if result is None:
        return "done"
    try:
        return to_json(result).decode()
    except PydanticSerializationError:
        return str(result)
