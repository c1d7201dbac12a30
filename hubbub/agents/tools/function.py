"""`@tool`: a typed Python function as a tool.

@tool(idempotent=True)
def word_count(text: Annotated[str, "what to count in"], ignore_case: bool = True) -> int:
    '''Count the different words of a text.'''
"""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from itertools import islice
from types import ModuleType
from typing import Any, Generic, Literal, ParamSpec, TypeVar, get_args, overload

from pydantic import JsonValue
from pydantic_core import PydanticSerializationError, to_json

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.prompt.builder import Condition
from hubbub.agents.tools.base import CallSite, Confirm
from hubbub.agents.tools.policy import Retry, ToolOverrides
from hubbub.agents.tools.runtime_arguments import CancelToken, IdempotencyKey
from hubbub.agents.tools.sandbox.process import run_in_process, target_of
from hubbub.agents.tools.schema import FunctionArguments, legal_name
from hubbub.agents.tools.worker_thread import run_in_thread
from hubbub.config.tooling import SandboxLimits
from hubbub.protocol.messages import Permission

__all__ = ["FunctionTool", "as_text", "as_tool", "as_tools", "describe", "tool"]

# Extracts descriptions of a function and its parameters from its docstring (in Google, NumPy or
# Sphinx style).


_SECTION = re.compile(r"(Args|Arguments|Parameters|Returns?|Raises|Yields|Examples?|Notes?)\s*:?\Z")
_UNDERLINE = re.compile(r"-{3,}\Z")
_GOOGLE = re.compile(r"\s+\*{0,2}(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)\Z")
_NUMPY = re.compile(r"(\w+)\s*(?::.*)?\Z")
_SPHINX = re.compile(r":param\s+(?:[\w\[\], |]+\s+)?(\w+)\s*:\s*(.*)\Z")


def describe(function: Callable[..., object]) -> tuple[str, dict[str, str]]:
    """The description up to the first section, one line per paragraph, and the parameters'."""
    lines = (inspect.getdoc(function) or "").splitlines()
    head = list(_head(lines))
    paragraphs = "\n".join(head).strip().split("\n\n")
    description = "\n\n".join(" ".join(p.split()) for p in paragraphs if p.strip())
    return description, _parameters(lines[len(head) :])


def _head(lines: Iterable[str]) -> Iterable[str]:
    for line in lines:
        if _SECTION.match(line) or line.startswith(":"):
            return
        yield line


def _parameters(lines: list[str]) -> dict[str, str]:
    descriptions: dict[str, list[str]] = {}
    current: list[str] | None = None
    section, indent = "", 0
    for line in lines:
        if _SECTION.match(line):
            section, current = line.rstrip(" :"), None
            continue
        entry = _parameter(line, section, indent)
        if entry is not None:
            current = descriptions.setdefault(entry[0], [])
            current.append(entry[1])
            indent = len(line) - len(line.lstrip())
        elif current is not None and line[:1].isspace():
            current.append(line.strip())
        elif line.strip():
            current = None
    return {name: " ".join(" ".join(text).split()) for name, text in descriptions.items()}


def _parameter(line: str, section: str, indent: int) -> tuple[str, str] | None:
    """The parameter whose description starts on this line, and the start of the description."""
    sphinx = _SPHINX.match(line)
    if sphinx:
        return sphinx[1], sphinx[2]
    if section not in ("Args", "Arguments", "Parameters") or _UNDERLINE.match(line):
        return None
    google = _GOOGLE.match(line)
    if google and (not indent or len(line) - len(line.lstrip()) <= indent):
        return google[1], google[2]
    numpy = _NUMPY.match(line) if section == "Parameters" else None
    return (numpy[1], "") if numpy else None


P = ParamSpec("P")
R = TypeVar("R")
Sandbox = Literal["process"] | SandboxLimits

_MAX_ITEMS = 10_000


class FunctionTool(Generic[P, R]):
    """A function that models can call; Python code still calls it as a function."""

    ordered = False
    speaks = False

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str | None = None,
        permission: Permission = "read",
        confirm: Confirm = False,
        idempotent: bool = False,
        timeout: float | None = None,
        retry: int | Retry | None = None,
        result_budget: int | None = None,
        sandbox: Sandbox | None = None,
        untrusted: bool = True,
        when: Condition | None = None,
    ):
        if not isinstance(getattr(function, "__name__", None), str):
            raise TypeError(f"{function!r} has no name: write a function (`def`) that calls it")
        _check_options(
            function.__name__, permission, confirm, timeout, retry, result_budget, sandbox
        )
        functools.update_wrapper(self, function)
        self._function = function
        description, parameters = describe(function)
        if not description:
            raise TypeError(f"{function.__name__}: a tool needs a docstring, which models read")
        self._arguments = FunctionArguments(function, parameters)
        tool_name = legal_name(function.__name__ if name is None else name)
        self.spec = ToolSpec(tool_name, description, self._arguments.schema)
        self.permission, self.confirm = permission, confirm
        self.idempotent, self.timeout = idempotent, timeout
        if retry is not None and not idempotent:
            raise TypeError(f"{function.__name__}: only an idempotent tool can be retried")
        retry = Retry(attempts=retry) if isinstance(retry, int) else retry
        self.overrides = ToolOverrides(retry=retry, budget=result_budget, untrusted=untrusted)
        self.sandbox, self.when = sandbox, when
        self.limits: SandboxLimits | None = None
        if sandbox is not None:
            self._confine(SandboxLimits() if sandbox == "process" else sandbox)

    @property
    def name(self) -> str:
        return self.spec.name

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self._function(*args, **kwargs)

    def sandboxed(self, limits: SandboxLimits) -> FunctionTool[P, R]:
        """A copy of the tool that runs each call in a separate process within `limits`.

        Raises TypeError if another process could not import the function, or if it takes a
        `CancelToken`: cancelling kills the process.
        """
        other = copy.copy(self)
        other._confine(limits)
        return other

    def _confine(self, limits: SandboxLimits) -> None:
        if CancelToken in self._arguments.given.values():
            raise TypeError(
                f"{self.name}: cancelling kills a sandboxed tool; it cannot take a CancelToken"
            )
        self._target = target_of(self._function)
        self.limits = limits

    def bind(
        self, arguments: Mapping[str, JsonValue], site: CallSite, token: CancelToken
    ) -> dict[str, object]:
        """The function's arguments. Raises `ToolFailed` if they are invalid."""
        bound = self._arguments.validate(arguments)
        for name, kind in self._arguments.given.items():
            bound[name] = token if kind is CancelToken else IdempotencyKey(site.cid)
        return bound

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Call the function: in its sandbox if it has one, in the event loop if it is async,
        otherwise in a thread.

        Cancelling stops an async or sandboxed function. A thread cannot be stopped: it continues,
        its `CancelToken` is set, and its result is discarded.
        """
        token = CancelToken()
        bound = self.bind(arguments, site, token)
        if self.limits is not None:
            return await run_in_process(self._target, arguments, site, self.limits)
        call = functools.partial(self._call, bound)
        try:
            if inspect.iscoroutinefunction(self._function):
                result = call()
            else:
                result = await run_in_thread(call)
            if isinstance(result, Awaitable):
                result = await result
            if isinstance(result, AsyncIterator):
                result = iter([item async for item in _first_items(result)])
            if isinstance(result, str):
                return result
            return await run_in_thread(functools.partial(as_text, result))  # can take long
        except asyncio.CancelledError:
            token.cancel()
            raise

    def _call(self, bound: Mapping[str, object]) -> object:
        function: Callable[..., object] = self._function
        return function(**bound)


class ToolMethod:
    """The result of `@tool` on a method: each object gets its own tool."""

    def __init__(self, function: Callable[..., object], **options: Any):  # those of `FunctionTool`
        self._function, self._options = function, options

    def __get__(self, instance: object, owner: type | None = None) -> object:
        if instance is None:
            return self
        return FunctionTool(self._function.__get__(instance), **self._options)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...
@overload
def tool(
    *,
    name: str | None = None,
    permission: Permission = "read",
    confirm: Confirm = False,
    idempotent: bool = False,
    timeout: float | None = None,
    retry: int | Retry | None = None,
    result_budget: int | None = None,
    sandbox: Sandbox | None = None,
    untrusted: bool = True,
    when: Condition | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...
def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str | None = None,
    permission: Permission = "read",
    confirm: Confirm = False,
    idempotent: bool = False,
    timeout: float | None = None,
    retry: int | Retry | None = None,
    result_budget: int | None = None,
    sandbox: Sandbox | None = None,
    untrusted: bool = True,
    when: Condition | None = None,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Turn a function into a tool. Its signature becomes the JSON Schema, its docstring the
    description.

    name           the tool's name for models; default: the function's name
    permission     read, write or admin: the effect of a call
    confirm        a person must approve each call; `"untrusted"`: only in turns that have read
                   untrusted content (from outside the network)
    idempotent     running it twice has the same effect as once: it can run again after a crash
    timeout        seconds per attempt
    retry          total attempts, or a `Retry`, for temporary failures; idempotent tools only
    result_budget  maximum tokens of the result that a model receives
    sandbox        `process` or `SandboxLimits`: runs each call in a separate process without
                   network
    untrusted      whether its results are untrusted (from outside the network), which taints
                   a turn that reads them; False for results computed from the arguments alone
    when           a function of the turn's context, sync or async: whether the turn has the tool

    Methods can be tools: each object gets its own. The runtime fills in parameters of type
    `IdempotencyKey` or `CancelToken`. Raises TypeError if the docstring or an annotation is
    missing, or if options contradict each other.
    """

    def decorate(decorated: Callable[P, R]) -> FunctionTool[P, R]:
        kind: type[FunctionTool[P, R]] | type[ToolMethod] = FunctionTool
        if next(iter(inspect.signature(decorated).parameters), None) == "self":
            kind = ToolMethod
        return kind(  # type: ignore[return-value]  # accessed on an object, a ToolMethod is one
            decorated,
            name=name,
            permission=permission,
            confirm=confirm,
            idempotent=idempotent,
            timeout=timeout,
            retry=retry,
            result_budget=result_budget,
            sandbox=sandbox,
            untrusted=untrusted,
            when=when,
        )

    return decorate if function is None else decorate(function)


def as_tool(function: Callable[..., object]) -> FunctionTool[..., object]:
    """The tool for a function; a tool is returned unchanged. Raises TypeError as `tool` does."""
    return function if isinstance(function, FunctionTool) else FunctionTool(function)


def as_tools(given: object) -> list[FunctionTool[..., object]]:
    """The tools of a function, a module or an object. For modules and objects, those that `@tool`
    marks, if any. Raises TypeError as `tool` does.
    """
    if isinstance(given, ToolMethod):
        raise TypeError(
            "it is a method, as its first parameter is `self`: name an object that has it"
        )
    if isinstance(given, FunctionTool) or inspect.isroutine(given):
        return [as_tool(given)]
    if isinstance(given, ModuleType):
        return [value for value in vars(given).values() if isinstance(value, FunctionTool)]
    kind = type(given)
    marked = [n for n in dir(kind) if isinstance(inspect.getattr_static(kind, n), ToolMethod)]
    if not marked and callable(given):
        return [as_tool(given)]
    return [getattr(given, name) for name in marked]


def _check_options(
    name: str,
    permission: object,
    confirm: object,
    timeout: object,
    retry: object,
    result_budget: object,
    sandbox: object,
) -> None:
    """Raise TypeError for a value that is none of its option."""
    attempts = retry.attempts if isinstance(retry, Retry) else retry
    is_sandbox = sandbox in (None, "process") or isinstance(sandbox, SandboxLimits)
    for valid, option, values, value in (
        (permission in get_args(Permission), "permission", "read, write or admin", permission),
        (confirm in (True, False, "untrusted"), "confirm", "True, False or 'untrusted'", confirm),
        (_is_over_0(timeout), "timeout", "a number of seconds over 0", timeout),
        (_is_over_0(attempts), "retry", "a number of attempts over 0, or a Retry", retry),
        (_is_over_0(result_budget), "result_budget", "a number of tokens over 0", result_budget),
        (is_sandbox, "sandbox", "'process' or SandboxLimits", sandbox),
    ):
        if not valid:
            raise TypeError(f"{name}: {option} is {values}, not {value!r}")


def _is_over_0(number: object) -> bool:
    return number is None or (isinstance(number, int | float) and number > 0)


async def _first_items(result: AsyncIterator[object]) -> AsyncIterator[object]:
    """The items of an iterator that `as_text` reads."""
    n = 0
    async for item in result:
        yield item
        n += 1
        if n == _MAX_ITEMS:
            return


def as_text(result: object) -> str:
    """A function's return value for a model: a string unchanged, anything else as JSON.

    Reads at most 10,000 items of an iterator, which could be endless.
    """
    if isinstance(result, str):
        return result
    if result is None:
        return "done"
    if isinstance(result, Iterator):
        items = list(islice(result, _MAX_ITEMS))
        result = {"items": items, "more": True} if len(items) == _MAX_ITEMS else items
    try:
        return to_json(result).decode()
    except PydanticSerializationError:
        return str(result)
