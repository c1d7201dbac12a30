"""Tools that end or pause the work: finish, ask, decline, announce a plan, and a requester's own.

They write to the thread that woke the agent, whatever other tools it has; `finish` does if it has a
message.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from itertools import chain, count
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import Field, JsonValue

from hubbub.agents.models.base import ToolSpec
from hubbub.agents.tools.base import CallSite, SendingTool
from hubbub.agents.tools.hub import HubCaller, hub_refusal
from hubbub.agents.tools.schema import ToolArguments
from hubbub.agents.turn.outbox import untrusted_mark
from hubbub.errors import OperationError
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.external_tools import ExternalCall, ExternalTool, call_text

__all__ = [
    "ASK_HUMAN",
    "CHECK",
    "DECLINE",
    "FINISH",
    "FORK",
    "REPLY",
    "SHOW_PLAN",
    "SILENT_FINISH",
    "WAIT_FOR",
    "ExternalToolProxy",
    "MessageTool",
    "external_proxies",
    "finish_tool",
    "reply_tool",
    "standard_tools",
]

FINISH, ASK_HUMAN, DECLINE = "finish", "ask_human", "decline"
SHOW_PLAN, FORK = "show_plan", "fork"
WAIT_FOR, CHECK = "wait_for", "check"
"""For helpers in the background (`hubbub.agents.fork`)."""
REPLY = "answer_asker"
"""The final answer of a role; not offered to models."""

Parsed = TypeVar("Parsed", bound=ToolArguments)
Status = Literal["result", "failed", "question"]
NonEmptyText = Annotated[str, Field(min_length=1)]


class _Question(ToolArguments):
    question: NonEmptyText
    """What you need to know, so that it can be understood without having seen your thoughts."""
    options: tuple[NonEmptyText, ...] = ()
    """Answers to choose from, if there are some."""


class _Refusal(ToolArguments):
    reason: NonEmptyText
    """Why, in a sentence; it is sent."""


class _Plan(ToolArguments):
    plan: NonEmptyText
    """What you are going to do, step by step."""


class _End(ToolArguments):
    message: str = ""
    """Your answer to the sender, if you have not sent it yet. Left out: nothing is sent."""
    reason: str = ""
    """Why you are done, for the record."""


class _Reply(ToolArguments):
    text: NonEmptyText
    """The text of the message."""


class MessageTool(SendingTool, Generic[Parsed]):
    """A tool that sends one message to the thread that woke the agent. In a turn that works on one
    request it reports the message, as the requester waits for that."""

    def __init__(
        self,
        spec: ToolSpec,
        model: type[Parsed],
        text_of: Callable[[Parsed], str],
        result: str,
        to: HubCaller,
        status: Status | None = "result",
    ):
        """`text_of` returns the message for the arguments; `result` is the result for the model.
        `status` is the message's role in a request, None if it has none."""
        self.name, self.spec, self._model = spec.name, spec, model
        self._text_of, self._result, self._caller = text_of, result, to
        self._status = status

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Send it. Raises `ToolFailed` for invalid arguments and when the hub refuses."""
        text = self._text_of(self._model.read(arguments))
        if not text.strip():
            return self._result  # only `finish` may be silent
        try:
            if not (self._status and site.request and await self._report(text, site)):
                await self._send("send_text_message", site, to=site.thread_id, text=text)
        except OperationError as exc:
            raise hub_refusal(exc) from exc
        return self._result

    async def _report(self, text: str, site: CallSite) -> bool:
        """Report the message. False if the request has ended, for example by an earlier report, or
        if its interaction has no hops left for an answer to a question."""
        try:
            await self._send("report", site, request=site.request, status=self._status, text=text)
        except OperationError as exc:
            if exc.code not in (ErrorCode.REQUEST_OVER, ErrorCode.HOP_LIMIT):
                raise
            return False
        return True

    async def _send(self, name: str, site: CallSite, **args: JsonValue) -> None:
        mark = untrusted_mark(site.untrusted)
        await self._caller.call(name, cid=site.cid, cause=site.turn, **args, **mark)


def standard_tools(
    caller: HubCaller,
) -> tuple[MessageTool[_Question], MessageTool[_Refusal], MessageTool[_Plan]]:
    """`ask_human`, `decline` and `show_plan`, sending through `caller`."""
    ask = _Question.spec_of(
        ASK_HUMAN,
        "Ask the sender a question, if you cannot continue without its answer. The answer comes as "
        "a new message, later.",
    )
    decline = _Refusal.spec_of(DECLINE, "Write to the sender that you will not do it, and why.")
    plan = _Plan.spec_of(SHOW_PLAN, "Write to the sender what you are about to do.")
    return (
        MessageTool(ask, _Question, _question, _ASKED, caller, "question"),
        MessageTool(
            decline,
            _Refusal,
            lambda refusal: f"I decline: {refusal.reason}",
            _DECLINED,
            caller,
            "failed",
        ),
        MessageTool(plan, _Plan, lambda arguments: arguments.plan, _SHOWN, caller, None),
    )


def finish_tool(caller: HubCaller) -> MessageTool[_End]:
    """`finish`, which sends its message, if it has one, to the thread that woke the agent."""
    spec = _End.spec_of(FINISH, "End this turn, with an answer or without one.")
    return MessageTool(spec, _End, lambda end: end.message, "finished", caller)


SILENT_FINISH = ToolSpec(
    FINISH,
    "End this turn: you are done, or there is nothing to do.",
    {
        "type": "object",
        "properties": {
            "reason": {"type": "string", "description": "In a few words, why you are done."}
        },
        "required": ["reason"],
        "additionalProperties": False,
    },
)
"""`finish` without a message, for helpers and roles."""


def reply_tool(caller: HubCaller) -> MessageTool[_Reply]:
    """The tool with which roles answer in the thread that woke the agent."""
    spec = _Reply.spec_of(REPLY, "Answer the sender.")
    return MessageTool(spec, _Reply, lambda arguments: arguments.text, "sent", caller)


_ASKED = (
    "the question is sent; the answer will come as a new message in a later turn. Do what you can "
    "do without it, then call finish"
)
_DECLINED = "the refusal is sent; call finish if there is nothing else to do"
_SHOWN = "the plan is sent; continue with it"


def _question(asked: _Question) -> str:
    """The question with its options numbered."""
    options = (f"{n}. {option}" for n, option in enumerate(asked.options, 1))
    return "\n".join((asked.question, *options))


# External tools: tools of the requester. Calling one hands the call over to the requester.


_NO_ARGUMENTS: dict[str, JsonValue] = {"type": "object", "properties": {}}
_RESULT = "handed over to who asked; the result comes with their next message"


class ExternalToolProxy(SendingTool):
    """One external tool: its call is sent to the requester as a message."""

    def __init__(self, tool: ExternalTool, name: str, caller: HubCaller):
        """`name`: its name for the model."""
        self.name, self._tool, self._caller = name, tool, caller
        self.spec = ToolSpec(name, tool.description, tool.parameters or _NO_ARGUMENTS)

    async def run(self, arguments: Mapping[str, JsonValue], site: CallSite) -> str:
        """Hand the call over. Raises `ToolFailed` if the hub refuses."""
        call = ExternalCall(id=site.cid, name=self._tool.name, arguments=dict(arguments))
        try:
            await self._caller.call(
                "send_message",
                cid=site.cid,
                cause=site.turn,
                to=site.thread_id,
                content={"external_call": call.model_dump(mode="json")},
                text_representation=call_text(call),
                **untrusted_mark(site.untrusted),
            )
        except OperationError as exc:
            raise hub_refusal(exc) from exc
        return _RESULT


def external_proxies(
    tools: Iterable[ExternalTool], taken: Collection[str], caller: HubCaller
) -> list[ExternalToolProxy]:
    """The tools, renamed where a name is taken by another tool."""
    proxies: dict[str, ExternalToolProxy] = {}
    for tool in tools:
        others = (f"asker{n}_{tool.name}"[:64] for n in count(2))
        names = chain((tool.name, f"asker_{tool.name}"[:64]), others)
        name = next(each for each in names if each not in taken and each not in proxies)
        proxies[name] = ExternalToolProxy(tool, name, caller)
    return list(proxies.values())
