"""Two agents whose model is scripted: ann asks the helper, the helper asks the expert, the expert
answers, and the helper tells ann."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from hubbub.protocol.operations import Turns, TurnSummary
from hubbub.testing.model_server import Answer, Call, ModelServer, Rule, Script, When
from tests.browser.support.desk import Desk, Desks
from tests.browser.support.network import Network, Networks, Plan
from tests.unit.configs.people import Person

__all__ = ["LAST", "PLAN", "QUESTION", "THREAD", "ask", "asked", "looks_at_the_answer", "script"]

THREAD = "dm.ann.helper"

QUESTION = "How big is Jupiter?"
LAST = "It is big."
"""What the helper tells ann in the end."""

_AGENT: Plan = {"kind": "llm", "tools": ["send_text_message"]}
PLAN: Plan = {
    "channels": {"desk": {}},
    "models": {
        "default": {
            "model": "scripted",
            "base_url": "${OPENAI_BASE_URL}",
            "api_key": "${OPENAI_API_KEY}",
            "price": {"input": 1.0, "output": 10.0},
        }
    },
    "agents": {
        "helper": {**_AGENT, "instruction": "You are the helper."},
        "expert": {**_AGENT, "instruction": "You are the expert."},
    },
    "humans": {"ann": {"roles": ["owner"]}, "bob": {}},
}


def script(hold: str | None = None) -> Script:
    """`hold`: what keeps the helper from ending its first turn."""
    to_helper, to_expert = "You are the helper", "You are the expert"
    return Script(
        rules=[
            Rule(
                when=When(system=to_helper, sender="^ann$", step=1),
                answer=Answer(
                    text="The expert knows.",
                    calls=[
                        _send("expert", "Please tell me: {{ incoming }}"),
                        _send("nobody", "Is anybody there?"),
                    ],
                ),
            ),
            Rule(
                when=When(system=to_helper, sender="^ann$", step=2),
                answer=Answer(calls=[_finish("the expert was asked")], hold=hold),
            ),
            Rule(
                when=When(system=to_expert, sender="^helper$", step=1),
                answer=Answer(calls=[_send("helper", "Big.")]),
            ),
            Rule(
                when=When(system=to_helper, sender="^expert$", step=1),
                answer=Answer(calls=[_send("ann", LAST)]),
            ),
            Rule(when=When(), answer=Answer(calls=[_finish("done")])),
        ]
    )


def _send(to: str, text: str) -> Call:
    return Call(tool="send_text_message", arguments={"to": to, "text": text})


def _finish(reason: str) -> Call:
    return Call(tool="finish", arguments={"reason": reason})


async def ask(network: Network) -> None:
    """Ann asks; returns when she has been answered and nobody is at work any more."""
    ann = await network.join("ann")
    await ann.tells("helper", QUESTION)
    await ann.hears("helper", lambda message: message.text == LAST)
    while any(turn.outcome is None for turn in await _turns(ann)):
        pass  # the question itself takes its time


async def _turns(ann: Person) -> Sequence[TurnSummary]:
    return Turns.model_validate(await ann.client.call("list_turns")).turns


async def looks_at_the_answer(desks: Desks, network: Network) -> Desk:
    """Ann, in the helper's thread, once she has asked."""
    desk = await desks.sit(network.page)
    await desk.join_as("ann")
    await desk.visit("thread", THREAD)
    await desk.sees(LAST)
    return desk


@asynccontextmanager
async def asked(desks: Desks, networks: Networks) -> AsyncIterator[Desk]:
    """The same in a network of its own, for who has more to say there."""
    async with ModelServer(script()) as model:
        network = await networks.start(PLAN, model=model)
        await ask(network)
        yield await looks_at_the_answer(desks, network)
        await desks.leave()
        await network.close()
