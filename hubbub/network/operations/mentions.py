"""What concerns a participant by name."""

from __future__ import annotations

from hubbub.mods.operation import operation
from hubbub.network.caller import Caller
from hubbub.network.queries import MentionsOf
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import ListMentions, MentionPage

__all__ = ["list_mentions"]


@operation()
async def list_mentions(call: Caller, args: ListMentions) -> MentionPage:
    """List messages that mention you, newest first; `before` pages back in time."""
    hub, state, me = call.hub, call.hub.state, call.participant
    before = hub.log.head + 1
    if args.before is not None:
        before = min(before, args.before)
    stored = await hub.store.read(MentionsOf(me, before, args.limit))
    found = map(Message.model_validate_json, stored.bodies)
    # Who has left a channel no longer reads it, not even where it was called by name.
    seen = [m for m in found if state.may_read(state.threads.ensure(m.thread_id), me)]
    shown = await hub.mods.pipeline.shown(seen)
    return MentionPage(messages=tuple(shown), upto=stored.upto, more=stored.upto > 1)
