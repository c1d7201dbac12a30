"""Serves an agent of the network to an editor over ACP: `hubbub acp`.

An editor session is a conversation between its user and the agent. A prompt is a question, its
answer streams, and an approval that the user can decide becomes a permission request.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from importlib.metadata import version
from typing import Any, cast

import acp
from acp.interfaces import Client as Editor
from acp.schema import (
    AgentCapabilities,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    Implementation,
    PermissionOption,
    PromptCapabilities,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
    ToolCallUpdate,
)

from hubbub.client import Client
from hubbub.errors import HubbubError, OperationError
from hubbub.ids import new_ulid
from hubbub.interop.asking.asker import Asker
from hubbub.interop.asking.question import Question, QuestionFailed
from hubbub.interop.asking.request import InboundRequest, RequestFile, UserInput
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.control import Approval, Approvals

__all__ = ["serve_editor"]

_OPTIONS = (
    PermissionOption(option_id="allow", name="Allow", kind="allow_once"),
    PermissionOption(option_id="deny", name="Refuse", kind="reject_once"),
)
_STOPS = {"max_steps": "max_turn_requests", "cancelled": "cancelled"}
QUIET_S = 60.0
"""Seconds until the question is checked again without a change."""


async def serve_editor(client: Client, agent: str) -> None:
    """Serve on stdin and stdout until the editor closes them.

    Raises `OperationError`, `ConnectionLost`, and `QuestionFailed` if there is no such agent."""
    asker = Asker(client)
    try:
        await asker.wait_joined()
        await asker.check(agent)
        # Only the methods of the announced capabilities exist; the library's protocol has all.
        await acp.run_agent(cast(acp.Agent, EditorAgent(asker, agent)))
    finally:
        await asker.leave()


class EditorAgent:
    """`acp.Agent` for an editor. It ignores the editor's MCP servers, since the agent runs
    elsewhere."""

    _editor: Editor

    def __init__(self, asker: Asker, agent: str):
        self._asker, self._agent = asker, agent
        self._prompts: dict[str, asyncio.Event] = {}
        """By session: set when the running prompt is cancelled."""

    def on_connect(self, conn: Editor) -> None:
        self._editor = conn

    async def initialize(
        self, protocol_version: int, *args: Any, **kwargs: Any
    ) -> acp.InitializeResponse:
        return acp.InitializeResponse(
            protocol_version=min(protocol_version, acp.PROTOCOL_VERSION),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, embedded_context=True),
            ),
            agent_info=Implementation(name=self._agent, version=version("hubbub")),
            auth_methods=[],
        )

    async def new_session(self, cwd: str, *args: Any, **kwargs: Any) -> acp.NewSessionResponse:
        return acp.NewSessionResponse(session_id=new_ulid())

    async def load_session(
        self, cwd: str, session_id: str, *args: Any, **kwargs: Any
    ) -> acp.LoadSessionResponse:
        try:
            messages = await self._asker.history(self._agent, session_id)
        except OperationError as error:
            if error.code != ErrorCode.UNKNOWN_THREAD:
                raise
            messages = ()  # nothing was asked in it yet
        for message in messages:
            mine = message.sender_id != self._agent
            update = acp.update_user_message_text if mine else acp.update_agent_message_text
            await self._editor.session_update(session_id, update(message.text))
        return acp.LoadSessionResponse()

    async def prompt(
        self, session_id: str, prompt: Sequence[object], **kwargs: Any
    ) -> acp.PromptResponse:
        cancelled = self._prompts[session_id] = asyncio.Event()
        try:
            request = InboundRequest(self._agent, [_input(prompt)], user=session_id)
            question = await self._asker.ask(request, "", "")
            async with (
                self._asker.waiting(question),
                _background(cancelled.wait()) as cancellation,
            ):
                await self._follow(session_id, question, cancellation)
            if cancelled.is_set():
                return acp.PromptResponse(stop_reason="cancelled")
            self._asker.mark_read(question)
        except HubbubError as error:
            failure = QuestionFailed.from_error(error)
            raise acp.RequestError(-32603, failure.message, {"code": failure.code}) from error
        stop: Any = _STOPS.get(question.outcome or "", "end_turn")
        return acp.PromptResponse(stop_reason=stop)

    async def _follow(
        self, session: str, question: Question, cancellation: asyncio.Task[object]
    ) -> None:
        """Send updates to the editor until the question is done or cancelled."""
        sent, state = 0, ""
        while not cancellation.done():
            done = question.done.is_set()
            if question.state != state:
                state = question.state
                await self._show_state(session, question, cancellation)
            elif len(question.written) > sent:
                added, sent = question.written[sent:], len(question.written)
                await self._editor.session_update(session, acp.update_agent_message_text(added))
            elif done:
                break
            else:
                changed = asyncio.ensure_future(question.wait_changed(QUIET_S))
                await asyncio.wait({changed, cancellation}, return_when=asyncio.FIRST_COMPLETED)
                changed.cancel()
        if question.failure is not None and not cancellation.done():
            raise question.failure

    async def _show_state(
        self, session: str, question: Question, cancellation: asyncio.Task[object]
    ) -> None:
        """Show what the agent waits for, or ask the user if it is an approval they can decide."""
        if not question.state:
            return
        approval = await self._approval(question)
        if approval is None:
            thought = acp.update_agent_thought_text(question.state)
            await self._editor.session_update(session, thought)
            return
        call = ToolCallUpdate(
            tool_call_id=approval.id,
            title=f"{approval.tool}: {approval.reason}" if approval.reason else approval.tool,
            status="pending",
            raw_input=approval.arguments,
        )
        asking = asyncio.ensure_future(
            self._editor.request_permission(session, call, list(_OPTIONS))
        )
        await asyncio.wait({asking, cancellation}, return_when=asyncio.FIRST_COMPLETED)
        if not asking.done():
            asking.cancel()
            return
        allowed = getattr(asking.result().outcome, "option_id", None) == "allow"
        with suppress(HubbubError):  # another person already decided
            if allowed:
                await self._asker.client.call("approve", id=approval.id, hash=approval.hash)
            else:
                await self._asker.client.call("deny", id=approval.id)

    async def _approval(self, question: Question) -> Approval | None:
        """The pending approval, if the user can decide it."""
        if not question.approval:
            return None
        value = await self._asker.client.call("list_approvals", state="pending")
        approvals = Approvals.model_validate(value).approvals
        return next((a for a in approvals if a.id == question.approval and a.may_decide), None)

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        if (prompt := self._prompts.get(session_id)) is not None:
            prompt.set()


@asynccontextmanager
async def _background(work: Any) -> AsyncIterator[asyncio.Task[object]]:
    """A task that is cancelled when the context ends."""
    task = asyncio.ensure_future(work)
    try:
        yield task
    finally:
        task.cancel()


def _input(prompt: Sequence[object]) -> UserInput:
    texts, files = [], []
    for number, block in enumerate(prompt, 1):
        match block:
            case TextContentBlock(text=text):
                texts.append(text)
            case ResourceContentBlock(name=name, uri=uri):
                texts.append(f"[{name}]({uri})")
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                texts.append(f"{uri}:\n```\n{text}\n```")
            case ImageContentBlock(data=data, mime_type=kind):
                name = f"image{number}.{kind.rpartition('/')[2]}"
                files.append(RequestFile(name, kind, base64.b64decode(data)))
            case _:
                raise QuestionFailed(
                    400, "unsupported", "the agent accepts only text, links and images"
                )
    return UserInput("\n\n".join(texts), files=tuple(files))
