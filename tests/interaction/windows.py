"""Context windows: messages that fill them, and their contents."""

from __future__ import annotations

from hubbub.agents.prompt.tokens import TokenEstimate
from hubbub.protocol.turns import Step
from hubbub.testing.model_request import ChatRequest
from tests.interaction.agent_harness import Harness
from tests.interaction.peers import config

__all__ = ["DESK", "LONG", "chatter", "layers", "size_of"]

LONG = "many words that fill the window "
DESK = config(channels={"desk": {"members": "all"}})


async def chatter(net: Harness, times: int) -> None:
    """Bob posts long messages m1, m2, ... in a channel, which wake no agent."""
    bob = await net.person("bob")
    for n in range(times):
        await bob.call("post_to_channel", channel="desk", text=f"{n} {LONG * 40}")


def size_of(request: ChatRequest) -> int:
    """The tokens of all texts of a request, without their wrapping."""
    return sum(TokenEstimate().count(message.text) for message in request.messages)


def layers(step: Step) -> dict[str, tuple[int, int]]:
    """The tokens of each layer of a prompt, and the number of tokens cut off."""
    assert step.window is not None
    return {layer.name: (layer.tokens, layer.cut) for layer in step.window.layers}
