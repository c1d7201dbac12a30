"""How an agent of the network is described to others."""

from __future__ import annotations

from importlib.metadata import version

from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    HTTPAuthSecurityScheme,
    SecurityRequirement,
    SecurityScheme,
    StringList,
)

from hubbub.protocol.messages import Participant

__all__ = ["MODES", "card_of"]

MODES = ("text/plain", "application/json")
"""What an agent reads; files come along as well."""


def card_of(agent: Participant, url: str) -> AgentCard:
    """The card of `agent`, which is asked at `url`."""
    own = agent.card
    interfaces = [
        AgentInterface(url=url, protocol_binding=binding, protocol_version="1.0")
        for binding in ("JSONRPC", "HTTP+JSON")
    ]
    description = own.description or f"The agent {agent.id}."
    words = own.skills or (description,)
    skills = [
        AgentSkill(
            id=f"skill-{n}",
            name=word[:100],
            description=word,
            tags=[agent.id],
            examples=own.examples if n == 1 else (),
        )
        for n, word in enumerate(words, 1)
    ]
    bearer = SecurityScheme(
        http_auth_security_scheme=HTTPAuthSecurityScheme(
            scheme="Bearer", description="A token of this network."
        )
    )
    return AgentCard(
        name=own.name or agent.id,
        description=description,
        version=version("hubbub"),
        supported_interfaces=interfaces,
        capabilities=AgentCapabilities(streaming=True, push_notifications=True),
        security_schemes={"token": bearer},
        security_requirements=[SecurityRequirement(schemes={"token": StringList()})],
        default_input_modes=MODES,
        default_output_modes=("text/plain",),
        skills=skills,
    )
