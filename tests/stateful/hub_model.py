"""A model of the hub in dicts and lists, written from the documentation.

Calls are handled one after the other, and state that can be derived from the log is not stored.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field
from typing import Any, NamedTuple

__all__ = ["Answer", "Data", "HubModel", "Wake"]

Data = dict[str, Any]
"""JSON as sent."""


class Answer(NamedTuple):
    value: Data
    error: str = ""
    duplicate: bool = False


class Wake(NamedTuple):
    reason: str
    reply: str


class Refused(Exception):
    """A call is refused with this code."""


@dataclass
class HubModel:
    """A hub of an open network, in which all participants but agents are owners."""

    hops: int
    depth: int
    """The levels of nested replies."""
    kinds: dict[str, str] = field(default_factory=dict)
    present: set[str] = field(default_factory=set)
    channels: dict[str, set[str]] = field(default_factory=dict)
    log: list[Data] = field(default_factory=list)
    """The messages, without their time."""
    reached: list[Set[str]] = field(default_factory=list)
    """The recipients of each message, and its sender."""
    wakes: dict[tuple[str, int], Wake] = field(default_factory=dict)
    """By agent and position."""
    at_limit: set[tuple[str, int]] = field(default_factory=set)
    """Wakes that the hop limit prevented."""
    waiting: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    """An agent's open wakes."""
    hop_limits: dict[str, int] = field(default_factory=dict)
    """By interaction."""
    first: dict[tuple[str, str], tuple[object, Data]] = field(default_factory=dict)
    """The call and its answer, by sender and cid."""

    # Participants -----------------------------------------------------------------------------

    def join(self, who: str, kind: str) -> None:
        self.kinds[who] = kind
        self.present.add(who)

    def stream(self, who: str) -> list[int]:
        """The positions of all messages to a participant; only people get their own, too."""
        own = self.kinds[who] == "human"
        return [
            message["seq"]
            for message, reached in zip(self.log, self.reached, strict=True)
            if who in reached and (own or message["sender_id"] != who)
        ]

    def has_read(self, agent: str, seq: int) -> None:
        """An agent that records no turns has acknowledged `seq`, which ends its wakes up to it."""
        self.waiting[agent] = [wake for wake in self.waiting[agent] if wake > seq]

    # Calls ------------------------------------------------------------------------------------

    def call(self, who: str, name: str, args: Mapping[str, Any], cid: str | None = None) -> Answer:
        """The answer to a call, which changes the model as it must change the hub."""
        key = who, cid or ""
        if key in self.first:
            call, value = self.first[key]
            same = call == (name, args)
            return Answer(value, duplicate=True) if same else Answer({}, "cid_conflict")
        try:
            value = getattr(self, name)(who, **args)
        except Refused as refused:
            return Answer({}, str(refused))
        if cid:
            self.first[key] = (name, args), value
        return Answer(value)

    def send_text_message(self, who: str, *, to: str | Sequence[str], **message: Any) -> Data:
        return self._send(who, self._target(who, to), **message)

    def broadcast_text_message(self, who: str, **message: Any) -> Data:
        return self._send(who, "broadcast", **message)

    def post_to_channel(self, who: str, *, channel: str, **message: Any) -> Data:
        if who not in self._channel(channel):
            raise Refused("forbidden")
        return self._send(who, f"channel.{channel.lstrip('#')}", **message)

    def reply(self, who: str, *, message_id: str, **message: Any) -> Data:
        under = self._message(message_id)
        if under is None or who not in self.readers(under["thread_id"]):
            raise Refused("unknown_message")
        if len(under["thread_id"].split(".t")) > self.depth:
            raise Refused("thread_depth")
        thread_id = f"{under['thread_id']}.t{under['seq']}"
        return self._send(who, thread_id, reply_to=under["id"], **message)

    def create_channel(self, who: str, *, name: str, members: Sequence[str] = ()) -> Data:
        if name in self.channels:
            raise Refused("channel_exists")
        self._check_participants(members)
        self.channels[name] = {who, *members}
        joined = sorted(self.channels[name])
        return {"name": name, "description": "", "members": joined, "joined": True}

    def join_channel(self, who: str, *, channel: str) -> Data:
        self._channel(channel).add(who)
        return {"done": True}

    def leave_channel(self, who: str, *, channel: str) -> Data:
        self._channel(channel).discard(who)
        return {"done": True}

    def read_thread(self, who: str, *, thread: str, before: int = 10**9, limit: int = 20) -> Data:
        thread_id = self._named(who, thread)
        if not self._exists(thread_id) or not self._can_read(who, thread_id):
            raise Refused("unknown_thread")
        earlier = [message for message in self.in_thread(thread_id) if message["tseq"] < before]
        page = earlier[-limit:]
        return {"thread_id": thread_id, "messages": page, "more": len(earlier) > len(page)}

    def list_threads(self, who: str) -> list[Data]:
        """The last message of each of the caller's threads, latest first."""
        last = {message["thread_id"]: message for message in self.log}
        mine = [m for thread_id, m in last.items() if who in self.readers(thread_id)]
        return sorted(mine, key=lambda message: -message["seq"])

    def explain_wake(self, agent: str, seq: int) -> tuple[bool, str]:
        """Whether the message woke the agent, and the code of the reason."""
        message = self.log[seq - 1]
        if (agent, seq) in self.wakes:
            return True, self.wakes[agent, seq].reason
        if (agent, seq) in self.at_limit:
            return False, "hop_limit"
        if message["sender_id"] == agent:
            return False, "own"
        if agent not in self.reached[seq - 1]:
            return False, "not_received"
        if message["sender_kind"] == "system":
            return False, "system"
        return False, "broadcast_policy" if message["type"] == "broadcast" else "not_mentioned"

    # Threads ----------------------------------------------------------------------------------

    def readers(self, thread_id: str) -> Set[str]:
        """The recipients of a thread's messages, including their sender."""
        kind, *names = root(thread_id).split(".")
        if kind == "channel":
            return self.channels.get(names[0], set())
        return set(names if kind == "dm" else self.kinds)

    def has_thread(self, who: str, thread: str) -> bool:
        """Whether a thread exists; `thread` can also be the name of a participant."""
        return self._exists(self._named(who, thread))

    def _named(self, who: str, thread: str) -> str:
        return direct(who, thread) if thread in self.kinds else canonical(who, thread)

    def in_thread(self, thread_id: str) -> list[Data]:
        return [message for message in self.log if message["thread_id"] == thread_id]

    def _exists(self, thread_id: str) -> bool:
        permanent = thread_id == "broadcast" or thread_id.removeprefix("channel.") in self.channels
        return permanent or bool(self.in_thread(thread_id))

    def _can_read(self, who: str, thread_id: str) -> bool:
        """Owners can read threads among agents."""
        readers = self.readers(thread_id)
        people = {name for name in readers if self.kinds[name] == "human"}
        owner = self.kinds[who] != "agent" and thread_id.startswith("dm.") and not people
        return who in readers or owner

    def _target(self, who: str, to: str | Sequence[str]) -> str:
        thread_id = canonical(who, to) if isinstance(to, str) else ""
        if not thread_id:
            others = {to} if isinstance(to, str) else set(to)
            if not others - {who}:
                raise Refused("bad_request")
            self._check_participants(sorted(others))
            return direct(who, *others)
        if thread_id.startswith("dm."):
            self._check_participants(sorted(self.readers(thread_id)))
        if thread_id.startswith("channel."):
            self._channel(root(thread_id).removeprefix("channel."))
        new = thread_id.startswith("dm.") and thread_id == root(thread_id)
        if who not in self.readers(thread_id) or not (new or self._exists(thread_id)):
            raise Refused("unknown_thread")
        return thread_id

    def _check_participants(self, names: Sequence[str]) -> None:
        if not set(names) <= self.kinds.keys():
            raise Refused("unknown_participant")

    def _channel(self, name: str) -> set[str]:
        if name.lstrip("#") not in self.channels:
            raise Refused("unknown_channel")
        return self.channels[name.lstrip("#")]

    def _message(self, message_id: str) -> Data | None:
        if not re.fullmatch(r"m[1-9]\d*", message_id):
            raise Refused("bad_request")
        seq = int(message_id[1:])
        return self.log[seq - 1] if seq <= len(self.log) else None

    # Messages ---------------------------------------------------------------------------------

    def _send(
        self,
        who: str,
        thread_id: str,
        *,
        text: str,
        mentions: Sequence[str] = (),
        cause: str | None = None,
        reply_to: str | None = None,
    ) -> Data:
        seq, kind = len(self.log) + 1, self.kinds[who]
        readers = self.readers(thread_id) - {who}
        if not set(mentions) <= readers:
            raise Refused("unknown_participant")
        named = list(dict.fromkeys(re.findall(r"@(\w+)", re.sub("`.*?`", "", text))))
        resolved = list(dict.fromkeys([*mentions, *(name for name in named if name in readers)]))
        interaction, hop = self._context(who, cause)
        if hop == 0:
            self.hop_limits[interaction] = self.hops if kind == "human" else max(1, self.hops // 2)
        message: Data = {
            "id": f"m{seq}", "seq": seq, "thread_id": thread_id,
            "tseq": len(self.in_thread(thread_id)) + 1, "sender_id": who, "sender_kind": kind,
            "type": {"dm": "direct"}.get(thread_id.split(".")[0], thread_id.split(".")[0]),
            "content": text, "interaction_id": interaction, "hop": hop, "reply_to": reply_to,
            "recipients": sorted(readers) if thread_id.startswith("dm.") else [],
            "mentions": resolved, "cause_id": cause,
        }  # fmt: skip
        message = {key: value for key, value in message.items() if value not in (None, [])}
        woken, not_woken = self._woken_by(message, readers), dict[str, str]()
        self.log.append(message)
        self.reached.append({*readers, who})
        if woken and hop >= self.hop_limits[interaction]:
            self.at_limit |= {(agent, seq) for agent in woken}
            woken, not_woken = {}, dict.fromkeys(woken, "hop_limit")
            self._notify(interaction)
        for agent, wake in woken.items():
            self.wakes[agent, seq] = wake
            self.waiting[agent].append(seq)
        addressed = {*message.get("recipients", ()), *resolved}
        return {
            "id": message["id"], "seq": seq, "thread_id": thread_id, "tseq": message["tseq"],
            "present": sorted(addressed & self.present),
            "absent": sorted(addressed - self.present),
            "queued": {agent: len(self.waiting[agent]) for agent in woken},
            "not_woken": not_woken, "message": message,
            "unresolved": [name for name in named if name not in readers],
        }  # fmt: skip

    def _notify(self, interaction: str) -> None:
        """Posts once, in the thread where an interaction began, that it is at its hop limit."""
        opening, seq = self.log[int(interaction[1:]) - 1], len(self.log) + 1
        thread_id, limit = opening["thread_id"], self.hop_limits[interaction]
        content = {
            "notice": "budget_hops", "code": "budget_hops", "interaction": interaction,
            "limit": "hops", "used": limit, "of": limit,
        }  # fmt: skip
        if any(message["content"] == content for message in self.log):
            return
        readers, opener = self.readers(thread_id), opening["sender_id"]
        notice = {
            "id": f"m{seq}", "seq": seq, "thread_id": thread_id, "type": opening["type"],
            "tseq": len(self.in_thread(thread_id)) + 1, "sender_id": "hub", "content": content,
            "sender_kind": "system", "interaction_id": f"i{seq}", "hop": 0,
        }  # fmt: skip
        if opening["sender_kind"] == "human" and opener in readers:
            notice["mentions"] = [opener]
        if opening["type"] == "direct":
            notice["recipients"] = sorted(readers)
        self.hop_limits[f"i{seq}"] = max(1, self.hops // 2)
        self.log.append(notice)
        self.reached.append({*readers})

    def _context(self, who: str, cause: str | None) -> tuple[str, int]:
        """A message's interaction, and its distance from the interaction's start."""
        own = f"i{len(self.log) + 1}"
        if cause is None:
            return own, 0
        before = self._message(cause)
        if before is None or who not in {*self.readers(before["thread_id"]), before["sender_id"]}:
            raise Refused("unknown_message")
        if self.kinds[who] == "human":
            return own, 0
        if before["hop"] >= self.hop_limits[before["interaction_id"]]:
            raise Refused("hop_limit")
        return before["interaction_id"], before["hop"] + 1

    def _woken_by(self, message: Data, readers: Set[str]) -> dict[str, Wake]:
        """The agents that the rules let it wake."""
        agents = {name for name in readers if self.kinds[name] == "agent"}
        person, thread_id = message["sender_kind"] == "human", message["thread_id"]
        asks, mentions = "required" if person else "optional", message.get("mentions", [])
        if message["type"] == "direct":
            return {agent: Wake("direct", asks) for agent in agents}
        woken = {agent: Wake("mention", asks) for agent in mentions if agent in agents}
        if thread_id != root(thread_id):
            last = self.last_speaker(thread_id)
            if person and not mentions and last in agents:
                woken[last] = Wake("last_speaker", asks)
        elif thread_id == "broadcast" and person:
            woken = {**dict.fromkeys(agents, Wake("broadcast", "optional")), **woken}
        return woken

    def last_speaker(self, thread_id: str) -> str:
        """The agent that wrote last in a reply thread or wrote the message it hangs under."""
        under = self.log[int(thread_id.rpartition(".t")[2]) - 1]
        senders = [m["sender_id"] for m in (under, *self.in_thread(thread_id))]
        return next((who for who in reversed(senders) if self.kinds.get(who) == "agent"), "")


def direct(*members: str) -> str:
    return ".".join(["dm", *sorted(set(members))])


def root(thread_id: str) -> str:
    """The thread at the top of nested reply threads. (No name in this model begins with a t.)"""
    return thread_id.partition(".t")[0]


def canonical(who: str, name: str) -> str:
    """The canonical id of a thread as named by `who`, empty if the name is invalid."""
    top, dot, replies = name.partition(".t")
    kind, _, rest = top.replace("_", ".", 1).partition(".")
    if kind in ("direct", "dm"):
        members = rest.split(".") if kind == "dm" else [who, *rest.split("+")]
        return direct(*members) + dot + replies if len(set(members)) > 1 else ""
    if kind == "channel":
        return f"channel.{rest}{dot}{replies}"
    return name if top == "broadcast" else ""
