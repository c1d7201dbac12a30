"""Channels: listing, creating, joining, leaving."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from hubbub.errors import OperationError
from hubbub.mods.operation import Commit, bad_request, forbidden, operation, over_limit
from hubbub.network.caller import Caller
from hubbub.network.kernel import Kernel
from hubbub.network.records import MemberLeft, Record, ThreadCreated
from hubbub.network.service import Service
from hubbub.network.services.threads import markers_at_end
from hubbub.network.state import ChannelState
from hubbub.network.stored import StoredChannel, StoredMark, StoredMember
from hubbub.network.targets import nearest
from hubbub.protocol import thread_ids
from hubbub.protocol.codes import ErrorCode
from hubbub.protocol.messages import Channel
from hubbub.protocol.operations import ChannelName, Channels, CreateChannel, Done, ListChannels

__all__ = ["ChannelService", "new_channel"]


class ChannelService(Service):
    """Lists, creates, joins and leaves channels."""

    @operation()
    def list_channels(self, call: Caller, args: ListChannels) -> Channels:
        """List the channels of the network, with their members and whether you are one."""
        state = self.state
        channels = [state.describe_channel(c, call.participant) for c in state.channels.values()]
        return Channels(channels=tuple(sorted(channels, key=lambda channel: channel.name)))

    @operation(permission="write", output=Channel)
    def create_channel(self, call: Caller, args: CreateChannel) -> Commit[Record]:
        """Create a channel; you and the members you name join it at once."""
        state = self.state
        if not thread_ids.is_channel_name(args.name):
            raise bad_request(f"name: {args.name!r} looks like a thread id; choose another")
        if args.name in state.channels or args.name in state.making:
            raise OperationError(
                ErrorCode.CHANNEL_EXISTS, f"the channel {args.name!r} exists; use join_channel"
            )
        for member in args.members:
            if not state.knows(member):
                hint = nearest(member, state.participants())
                raise OperationError(
                    ErrorCode.UNKNOWN_PARTICIPANT,
                    f"members: no participant is named {member[:64]!r}{hint}",
                )
        members = {call.participant, *args.members}
        return new_channel(self.kernel, args.name, args.description, members)

    @operation(permission="write", output=Done)
    def join_channel(self, call: Caller, args: ChannelName) -> Commit[Record]:
        """Join a channel: from now on you receive what is posted there."""
        state = self.state
        channel = state.channel(args.channel)
        scope = channel.scope
        if not self.kernel.file.may_join(call.participant, channel.name):
            raise forbidden(
                f"the network's config lists the members of {channel.name!r}, and you are not one"
            )
        since = self.kernel.log.head
        marks: Sequence[StoredMark] = ()

        # Recorded even for a member, as its leaving may be in flight.
        def records(head: int) -> Sequence[Record]:
            nonlocal since, marks
            since = head
            if call.kind == "human" and state.members.since(call.participant, scope) is None:
                marks = markers_at_end(self.kernel, call.participant, scope)
            return [StoredMember(call.participant, scope, head), *marks]

        def applied() -> None:
            if call.participant not in state.members.of(scope):
                self.kernel.notifications.channel_changed(channel.name)
            state.members.join(call.participant, scope, since)
            for mark in marks:
                state.marks.put(call.participant, mark.thread_no, mark.tseq)

        return Commit(records, Done(), applied)

    @operation(permission="write", output=Done)
    def leave_channel(self, call: Caller, args: ChannelName) -> Commit[Record]:
        """Leave a channel: you no longer receive what is posted there."""
        state = self.state
        channel = state.channel(args.channel)
        scope = channel.scope

        def applied() -> None:
            if call.participant in state.members.of(scope):
                self.kernel.notifications.channel_changed(channel.name)
            state.members.leave(call.participant, scope)

        return Commit(lambda head: [MemberLeft(call.participant, scope, head)], Done(), applied)


def new_channel(
    kernel: Kernel, name: str, description: str, members: Collection[str]
) -> Commit[Record]:
    """A commit that creates a channel with these members and answers with it. Raises
    `OperationError` at the limit of channels."""
    state, limit = kernel.state, kernel.limits.channels
    if len(state.channels) + len(state.making) >= limit:
        raise over_limit(f"a network has at most {limit} channels")
    state.making.add(name)
    thread = state.threads.ensure(thread_ids.channel(name))

    def records(head: int) -> Sequence[Record]:
        created = [] if thread.stored else [ThreadCreated(thread.no, thread.id)]
        joined = (StoredMember(member, thread.no, head) for member in answer.members)
        return [*created, StoredChannel(name, description), *joined]

    def applied() -> None:
        thread.stored = True
        state.channels[name] = ChannelState(name, description, thread.no)
        for member in members:
            state.members.join(member, thread.no, kernel.log.head)
        kernel.notifications.channel_changed(name)

    answer = Channel(
        name=name, description=description, members=tuple(sorted(members)), joined=True
    )
    return Commit(records, answer, applied, lambda: state.making.discard(name))
