"""Tool calls that wait for a person."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from hubbub.errors import UserError
from hubbub.people.client import PersonClient
from hubbub.people.commands import Command
from hubbub.people.oversight import approval_words, decided_words
from hubbub.people.parameters import Parameter, value_of
from hubbub.people.shown import NoteLine, Shown, done, notes
from hubbub.protocol.control import Approval, Approvals

__all__ = ["COMMANDS"]


def listed(found: Approvals, person: PersonClient) -> list[NoteLine]:
    """Those that wait with everything that is needed to decide; the others in a line each."""
    lines: list[str] = []
    for approval in found.approvals:
        waits = approval.state == "pending"
        words = approval_words(approval, person.shown, person.typed) if waits else ()
        lines += words or [decided_words(approval)]
    if found.more:
        lines.append("and older ones")
    return notes(lines or ["there are no pending approvals"], "plain" if lines else "info")


async def _meant(person: PersonClient, name: str) -> Approval:
    """The pending approval that somebody means, as the hub has it now."""
    found = await person.ask(Approvals, "list_approvals", state="pending", limit=200)
    try:
        return person.approval(name, found.approvals)
    except UserError:
        found = await person.ask(Approvals, "list_approvals", state="all", limit=200)
        over = [each for each in found.approvals if name and name in each.id]
        if len(over) != 1 or over[0].state == "pending":
            raise
    raise UserError(f"nothing to decide: {decided_words(over[0])}")


async def approve(person: PersonClient, given: dict[str, Any]) -> Shown:
    """Let a call run, as it was asked for or with other arguments."""
    arguments = given.get("arguments")
    if given.get("edit") and arguments is not None:
        raise UserError("approve takes arguments or --edit, not both")
    asked = await _seen(person, given["id"])
    if given.get("edit"):
        arguments = _edited(asked.arguments)
    args: dict[str, JsonValue] = {"id": asked.id, "hash": asked.hash, "arguments": arguments}
    return await _decide(person, asked, "approve", args)


async def deny(person: PersonClient, given: dict[str, Any]) -> Shown:
    asked = await _seen(person, given["id"])
    return await _decide(
        person, asked, "deny", {"id": asked.id, "reason": given.get("reason") or ""}
    )


async def _seen(person: PersonClient, name: str) -> Approval:
    return person.state.oversight.approvals.get(name) or await _meant(person, name)


async def _decide(
    person: PersonClient, asked: Approval, operation: str, args: dict[str, JsonValue]
) -> Shown:
    """Where a signal says so anyway, nothing is shown a second time."""
    oversight = person.state.oversight
    known_before = asked.id in oversight.approvals
    value = await person.call(operation, **args)
    decided = Approval.model_validate(value)
    heard = known_before and not oversight.note(decided)
    return Shown(value, [] if heard else done(decided_words(decided)))


def _edited(arguments: dict[str, JsonValue]) -> JsonValue:
    """The arguments as somebody has left them in an editor. Raises `UserError`."""
    editor = os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "arguments.json"
        path.write_text(json.dumps(arguments, indent=2, ensure_ascii=False) + "\n", "utf-8")
        try:
            code = subprocess.run([*shlex.split(editor), str(path)], check=False).returncode
        except OSError as exc:
            raise UserError(f"the editor {editor!r} does not start: {exc}") from exc
        if code:
            raise UserError(f"the editor {editor!r} ended with {code}; nothing is approved")
        return value_of(Parameter("arguments", kind="object"), path.read_text("utf-8"))


COMMANDS = (
    Command("approvals list", "list_approvals", listed,
            about="List tool calls that wait for a person, with what to type."),
    Command("approvals approve", "approve", do=approve, order=("id", "arguments?"),
            without=("reason",), more=(
                Parameter("edit", "Change the arguments in $VISUAL or $EDITOR.", "flag"),),
            about="Let a tool call run, as it was asked for or with other arguments."),
    Command("approvals deny", "deny", do=deny, order=("id", "reason?"),
            about="Do not let a tool call run, and say why."),
)  # fmt: skip
