"""The core's operations, one noun per file. Mods add theirs the same way."""

from __future__ import annotations

from hubbub.mods.operation import Operation
from hubbub.network.operations import (
    admin,
    channels,
    interactions,
    marks,
    memory,
    mentions,
    messages,
    participants,
    threads,
    trials,
    turns,
    wakes,
)

__all__ = ["CORE_OPERATIONS"]

CORE_OPERATIONS: tuple[Operation, ...] = (
    messages.send_text_message,
    messages.send_message,
    messages.broadcast_text_message,
    messages.post_to_channel,
    messages.reply,
    messages.read_message,
    participants.list_participants,
    threads.list_threads,
    threads.read_thread,
    marks.mark_read,
    marks.mark_unread,
    mentions.list_mentions,
    memory.remember,
    memory.recall,
    memory.forget,
    channels.list_channels,
    channels.create_channel,
    channels.join_channel,
    channels.leave_channel,
    turns.begin_turn,
    turns.record_step,
    turns.end_turn,
    turns.list_turns,
    turns.read_turn,
    trials.try_turn,
    trials.turn_tried,
    trials.list_models,
    wakes.explain_wake,
    wakes.read_receipts,
    interactions.read_interaction,
    admin.add_token,
    admin.revoke_tokens,
    admin.list_tokens,
    admin.network_status,
)
