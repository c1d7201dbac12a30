"""Sending and reading single messages."""

from __future__ import annotations

from functools import lru_cache

from hubbub.errors import OperationError
from hubbub.ids import parse_message_id
from hubbub.mods.operation import bad_request, forbidden, operation
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.queries import MentionsOf
from hubbub.network.routing import Sender
from hubbub.network.service import Service
from hubbub.network.threads import Thread
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Draft, Message
from hubbub.protocol.operations import (
    BroadcastTextMessage,
    ListMentions,
    MentionPage,
    PostToChannel,
    ReadMessage,
    Reply,
    SendMessage,
    SendResult,
    SendTextMessage,
    Speech,
)

__all__ = ["MessageService", "find_message", "sender", "stored_message", "unknown_message"]

_sender = lru_cache(maxsize=4096)(Sender)
"""Cached, as each sender sends many messages."""


class MessageService(Service):
    """Sends and reads single messages."""

    @operation(permission="write", output=SendResult)
    def send_text_message(self, call: Caller, args: SendTextMessage) -> Draft:
        """Send a text to a participant, to several (a group), or into a thread you are in. Agents
        it is sent to directly will act on it."""
        router, who = self.kernel.router, sender(call, args)
        thread = router.thread(args.to, who.id, who.sent_by)
        return router.draft(who, thread, args.text, args)

    @operation(permission="write", output=SendResult)
    def send_message(self, call: Caller, args: SendMessage) -> Draft:
        """Send JSON content to a participant, a group or a thread, with a text representation."""
        router, who = self.kernel.router, sender(call, args)
        thread = router.thread(args.to, who.id, who.sent_by)
        shown = args.text_representation
        return router.draft(who, thread, args.content, args, text_representation=shown)

    @operation(permission="write", output=SendResult)
    def broadcast_text_message(self, call: Caller, args: BroadcastTextMessage) -> Draft:
        """Send a text to everyone in the network. Mention an agent with @name to make it act."""
        thread, who = self.state.broadcast, sender(call, args)
        return self.kernel.router.draft(who, thread, args.text, args)

    @operation(permission="write", output=SendResult)
    def post_to_channel(self, call: Caller, args: PostToChannel) -> Draft:
        """Post a text to a channel you are a member of. Mention an agent with @name to make it
        act."""
        channel, who = self.state.channel(args.channel), sender(call, args)
        thread = self.state.threads.by_no(channel.scope)
        if not self.state.may_read(thread, who.id):
            subject = "you are" if who.sent_by is None else f"{who.id} is"
            raise forbidden(f"{subject} not a member of {channel.name!r}; use join_channel first")
        return self.kernel.router.draft(who, thread, args.text, args)

    @operation(permission="write", output=SendResult)
    async def reply(self, call: Caller, args: Reply) -> Draft:
        """Reply under a message: opens or continues that message's own reply thread. To answer in
        the message's thread itself, send a text to the thread's id instead."""
        who = sender(call, args)
        message = await find_message(
            self.kernel, call, args.message_id, look=who.sent_by is not None
        )
        if message.amends is not None:  # it is shown as its original, and so has no replies
            of = message.amends.message_id
            raise bad_request(f"message_id: {message.id} changes {of}; reply to {of} instead")
        state, router = self.state, self.kernel.router
        under = state.thread_for(message.thread_id, who.id, who.sent_by)
        thread = router.reply_thread(under, message.seq)
        if thread.tseq == 0 and message.sender_kind == "agent":
            thread.last_agent = message.sender_id
        if args.content is None:
            return router.draft(who, thread, args.text, args, reply_to=message.id)
        return router.draft(
            who, thread, args.content, args, text_representation=args.text, reply_to=message.id
        )

    @operation()
    async def read_message(self, call: Caller, args: ReadMessage) -> Message:
        """Read one message by its id, for example m42."""
        message = await find_message(self.kernel, call, args.id, look=True)
        return (await self.kernel.pipeline.shown([message]))[0]

    @operation()
    async def list_mentions(self, call: Caller, args: ListMentions) -> MentionPage:
        """List messages that mention you, newest first; `before` pages back in time."""
        state, me = self.state, call.participant
        before = self.kernel.log.head + 1
        if args.before is not None:
            before = min(before, args.before)
        stored = await self.store.read(MentionsOf(me, before, args.limit))
        messages = map(Message.model_validate_json, stored.bodies)
        # A former member of a channel no longer reads it, not even its own mentions.
        visible = [m for m in messages if state.may_read(state.threads.ensure(m.thread_id), me)]
        shown = await self.kernel.pipeline.shown(visible)
        return MentionPage(messages=tuple(shown), upto=stored.upto, more=stored.upto > 1)


def sender(call: Caller, args: Speech) -> Sender:
    """The participant that the caller sends as: itself, or the agent in `on_behalf_of`.

    Raises `OperationError` unless the caller has taken over that agent.
    """
    agent, me = args.on_behalf_of, call.participant
    if agent is None:
        return _sender(me, call.kind)
    if call.state.takeovers.holder(agent) != me:
        raise forbidden(f"on_behalf_of: you do not speak for {agent[:64]!r}; take it over first")
    return Sender(agent, "agent", me)


async def find_message(
    kernel: Kernel, call: Caller, message_id: str, *, look: bool = False, unseen: bool = False
) -> Message:
    """The message, whose thread the caller must read or, with `look`, may inspect; with `unseen`
    any message.

    Raises `OperationError`.
    """
    message = await stored_message(kernel, message_id)
    if message is not None:
        thread = kernel.state.threads.get(message.thread_id)
        if unseen or (thread and _sees(call, thread, look=look)):
            return message
    raise unknown_message(message_id)


async def stored_message(kernel: Kernel, message_id: str) -> Message | None:
    """The message, without a check of permission. Raises `OperationError` for an invalid id."""
    seq = parse_message_id(message_id)
    if seq is None:
        raise bad_request(f"{message_id[:64]!r} is not a message id; they look like m42")
    body = await kernel.store.message(seq) if seq <= kernel.log.head else None
    return None if body is None else Message.model_validate_json(body)


def unknown_message(message_id: str) -> OperationError:
    """The error for a message that does not exist or that the caller must not read."""
    return OperationError(
        ErrorCode.UNKNOWN_MESSAGE, f"no message {message_id[:64]} is visible to you"
    )


def _sees(call: Caller, thread: Thread, *, look: bool) -> bool:
    return call.may_look(thread) if look else call.state.may_read(thread, call.participant)
