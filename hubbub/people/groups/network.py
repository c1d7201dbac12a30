"""The network as it stands: how it is doing, and what keeps agents from working."""

from __future__ import annotations

from typing import Any

from hubbub.people.client import PersonClient
from hubbub.people.commands import Command
from hubbub.people.oversight import breaker_words, stopped_words, takeover_words
from hubbub.people.shown import Shown, notes
from hubbub.protocol.control import Breakers, Stops, Takeovers

__all__ = ["COMMANDS"]


async def stops(person: PersonClient, given: dict[str, Any]) -> Shown:
    """All that keeps agents from working."""
    stopped, breakers = await person.call("list_stops"), await person.call("list_breakers")
    held = await person.call("list_takeovers")
    shown, typed = person.shown, person.typed
    lines = [stopped_words(each, shown, typed) for each in Stops.model_validate(stopped).stops]
    open_ = Breakers.model_validate(breakers).breakers
    lines += [breaker_words(each, shown, typed) for each in open_]
    taken = Takeovers.model_validate(held).takeovers
    lines += [takeover_words(each, person.me, typed) for each in taken]
    nothing = ["nothing is stopped or taken over"]
    value: dict[str, Any] = {}
    for each in (stopped, breakers, held):
        value |= each if isinstance(each, dict) else {}
    return Shown(value, notes(lines or nothing, "plain" if lines else "info"))


COMMANDS = (
    Command("network status", "network_status", operator=True, where="shell",
            about="Show how the network is doing."),
    Command("network models", "list_models", operator=True,
            columns=("name", "model", "endpoint", "in=usd_in", "out=usd_out"),
            about="List the models of the network, with US dollars for a million tokens."),
    Command("network stops", "list_stops", do=stops, operator=True,
            about="Show what is stopped, which breakers are open, and who speaks for whom."),
)  # fmt: skip
