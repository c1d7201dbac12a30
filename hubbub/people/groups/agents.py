"""Participants: presence, capabilities, and speaking for an agent."""

from __future__ import annotations

from typing import Any

from hubbub.config.units import span
from hubbub.errors import UserError
from hubbub.mods.directory.schemas import FoundAgents
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command
from hubbub.people.figures import delivery_notes, moment
from hubbub.people.oversight import takeover_text
from hubbub.people.parameters import Parameter
from hubbub.people.shown import CommandResult, NoteLine, done, notes, table
from hubbub.people.text import one_line, visible
from hubbub.protocol import thread_ids
from hubbub.protocol.admin import AgentLog
from hubbub.protocol.agents import AgentDefinition, AgentDraft, AgentSaved
from hubbub.protocol.control import Takeover, Takeovers
from hubbub.protocol.operations import Done, SendResult

__all__ = ["COMMANDS"]


def fitting(answer: FoundAgents, person: PersonClient) -> list[NoteLine]:
    """Matching agents, best first; or advice if there are none."""
    if not answer.agents:
        return [NoteLine(answer.advice.replace("list_agents", person.typed("agents list")))]
    rows = ((a.id, _state(a.present, a.open), ", ".join(a.why), a.cost, a.description)
            for a in answer.agents)  # fmt: skip
    return table(("NAME", "STATE", "FITS", "COST", ""), rows)


def _state(present: bool, open: int) -> str:
    """Presence and workload: `free`, `busy (2)`, `away`."""
    if not present:
        return f"away, {open} waiting" if open else "away"
    return f"busy ({open})" if open else "free"


# Speaking for an agent ----------------------------------------------------------------------------


async def take_over(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    agent, time = person.agent(given["agent"]), given.get("for")
    minutes = None if time is None else _minutes(time)
    value = await person.call("take_over", agent=agent, minutes=minutes)
    held = Takeover.model_validate(value)
    return CommandResult(value, done(takeover_text(held, person.me, person.typed)))


def _minutes(text: str) -> float:
    """`15m`, `1h` in minutes. Raises `UserError`."""
    try:
        seconds = span(text)
    except ValueError:
        seconds = None
    if not isinstance(seconds, float) or not 0 < seconds <= 86400:
        raise UserError(f"{text!r} is not a duration of at most a day, such as 15m or 1h")
    return seconds / 60


async def release(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Release an agent; by default the only one this person speaks for."""
    held = (await person.ask(Takeovers, "list_takeovers")).takeovers
    mine = [each.agent for each in held if each.by == person.me]
    if given.get("agent"):
        agent = person.agent(given["agent"])
    elif len(mine) == 1:
        agent = mine[0]
    else:
        raise UserError(
            f"name one of {', '.join(mine)}" if mine else "you are not speaking for any agent"
        )
    if agent not in [each.agent for each in held]:
        return CommandResult({"released": agent}, done(f"{agent} already speaks for itself"))
    notified = person.state.oversight.notifies_end("takeover", agent)
    await person.ask(Done, "hand_back", agent=agent)
    line = f"{agent} speaks for itself again"
    return CommandResult({"released": agent}, [] if notified else done(line))


async def on_behalf_of(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Post in the open thread as an agent that this person has taken over."""
    agent, text = person.agent(given["agent"]), given["text"]
    operation, where = person.state.way_to(person.state.current)
    value = await person.call(operation, text=text, on_behalf_of=agent, **where)
    sent = SendResult.model_validate(value)
    line = f"{sent.id} sent as {agent} in {person.shown(sent.thread_id)}"
    top = thread_ids.root(sent.thread_id)
    if top.startswith("dm.") and person.me not in thread_ids.members_of(top):
        line += f": {one_line(text)}"  # the hub delivers it to the thread's members only
    return CommandResult(value, [*done(line), *notes(delivery_notes(sent, person.typed))])


def log(answer: AgentLog, person: PersonClient) -> list[NoteLine]:
    return [NoteLine(visible(line)) for line in answer.lines]


async def add(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Create an agent, drafted from a sentence if one is given."""
    if sentence := given.pop("from", None):
        draft = await person.ask(AgentDraft, "draft_agent", sentence=sentence)
        given = {"agent": draft.agent, **draft.fields.model_dump(exclude_none=True), **given}
    if not given.get("agent"):
        raise UserError('name the agent, or describe it: --from "a reviewer who reads diffs"')
    value = await person.call("add_agent", **given)
    saved = AgentSaved.model_validate(value)
    return CommandResult(
        value, done(f"created {saved.agent} (version {saved.version}); it is starting")
    )


async def edit(person: PersonClient, given: dict[str, Any]) -> CommandResult:
    """Change an agent; with a share, only its instruction and model in that share of threads."""
    if (share := given.pop("share", None)) is not None:
        answer = await person.ask(AgentDefinition, "read_agent", agent=given["agent"])
        given = {**given, **rolled_out(answer, given, _share(share)), "version": answer.version}
    saved = AgentSaved.model_validate(await person.call("edit_agent", **given))
    return CommandResult(
        saved.model_dump(), done(f"{saved.agent} is now at version {saved.version}")
    )


def rolled_out(answer: AgentDefinition, given: dict[str, Any], share: float) -> dict[str, Any]:
    """The fields for a rollout. At 100% the new instruction and model apply in all threads, at 0%
    in none."""
    names, rollout = ("instruction", "model"), answer.fields.rollout
    before = rollout.model_dump(include={*names}, exclude_none=True) if rollout else {}
    fresh = before | {name: given[name] for name in names if name in given}
    if share and not fresh:
        raise UserError("--share needs --instruction or --model")
    if share == 1:
        return {**fresh, "rollout": None}
    was = {name: getattr(answer.fields, name) for name in names if name in given}
    return {**was, "rollout": {"share": share, **fresh} if share else None}


def _share(text: str) -> float:
    """`20%` as 0.2."""
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UserError(f"--share must be a share of threads such as 20%, not {text!r}")
    return share


def definition(answer: AgentDefinition, person: PersonClient) -> list[NoteLine]:
    """The current definition, then its versions."""
    fields = answer.fields.model_dump(exclude_none=True)
    rows = ((name.replace("_", " "), _plain(value)) for name, value in fields.items())
    versions = (
        (f"version {each.version}", each.by or "by hand", moment(each.at) if each.at else "")
        for each in answer.versions
    )
    return [*table((answer.agent.upper(), answer.file), rows), *table(("", "BY", "AT"), versions)]


def _plain(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_plain(each)}" for name, each in value.items())
    return visible(", ".join(value) if isinstance(value, tuple) else str(value))


_PROCESS = ("name=agent", "state", "pid", "deaths", "code")

COMMANDS = (
    Command("agents list", "list_participants", operator=True,
            columns=("name=id", "kind", "here=present", "about=card.description"),
            about="List the participants and whether they are online."),
    Command("agents processes", "list_agent_processes", operator=True,
            columns=_PROCESS, about="List the processes of the network's agents."),
    Command("agents start", "start_agent", operator=True, columns=_PROCESS),
    Command("agents stop", "stop_agent", operator=True, columns=_PROCESS,
            about="Stop an agent's process until it is started again."),
    Command("agents restart", "restart_agent", operator=True, columns=_PROCESS,
            about="Restart an agent's process."),
    Command("agents logs", "read_agent_log", log, operator=True),
    Command("agents add", "add_agent", do=add, order=("agent?",), operator=True, where="shell",
            without=("rollout",),
            more=(Parameter("from", "A description from which a model drafts the agent."),)),
    Command("agents edit", "edit_agent", do=edit, operator=True, where="shell",
            without=("version", "rollout"), about="Change an agent; omitted fields stay the same.",
            more=(Parameter("share", "The share of threads that use the new instruction or model, "
                            "for example 20%; 100%: all, 0%: none."),)),
    Command("agents show", "read_agent", definition, operator=True, where="shell"),
    Command("agents rollback", "roll_back_agent", order=("agent", "to"), operator=True,
            where="shell"),
    Command("agents remove", "remove_agent", operator=True, where="shell"),
    Command("agents choices", "agent_choices", operator=True, where="shell",
            about="List the models, tools and other choices for an agent."),
    Command("agents find", "find_agent", fitting,
            about="Find agents that can do something, best match first."),
    Command("agents card", "read_card",
            about="Show a participant's card: its description of itself."),
    Command("agents takeover", "take_over", do=take_over, order=("agent", "for?"),
            without=("minutes",),
            about="Speak for an agent for a while; nothing wakes it in the meantime.",
            more=(Parameter("for", "For how long, for example 15m or 1h."),)),
    Command("agents release", "hand_back", do=release, order=("agent?",),
            about="End a takeover: let an agent speak for itself again."),
    Command("agents as", "take_over", do=on_behalf_of, where="chat", order=("agent", "text"),
            without=("minutes",), about="Post here as an agent that you have taken over.",
            more=(Parameter("text", required=True),)),
)  # fmt: skip
