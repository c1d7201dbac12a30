"""The parts of the pages about the config and the commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from generating.models import fields, models_of
from generating.tables import docstring, table
from hubbub.cli.app import command_of, program
from hubbub.config import models as config_models
from hubbub.config import tooling
from hubbub.config.agents import AcpConfig, ContextConfig, ForkConfig, RolesConfig
from hubbub.config.knowledge import KnowledgeConfig
from hubbub.config.models import NetworkFile
from hubbub.mods.loader import BUILT_IN, find_mod
from hubbub.people.chat.slash import LOCAL, usage
from hubbub.people.commands import all_commands
from hubbub.protocol import messages

__all__ = ["cli_parts", "config_parts"]

WIDTH = 88
"""Columns of a command's help."""


def config_parts() -> dict[str, str]:
    parts = {}
    for model in models_of(NetworkFile, module=config_models):
        parts[f"config_{model.__name__.lower()}"] = fields(model)
    for model in (tooling.McpServerConfig, tooling.SandboxLimits, tooling.ToolConfig):
        parts[f"config_{model.__name__.lower()}"] = fields(model)
    sections = (AcpConfig, ContextConfig, KnowledgeConfig, RolesConfig, ForkConfig)
    for section in sections:
        parts[f"config_{section.__name__.lower()}"] = fields(section)
    parts["config_card"] = fields(messages.Card)
    mods = [find_mod(name).kind for name in sorted(BUILT_IN)]
    parts["mod_list"] = "\n\n".join(
        f"### {mod.name}\n\n{docstring(mod)}\n\n{fields(mod.Config)}" for mod in mods
    )
    return parts


def cli_parts() -> dict[str, str]:
    root: Any = command_of(program())  # of typer's own classes
    context = root.context_class(
        root, info_name="hubbub", terminal_width=WIDTH, **root.context_settings
    )
    return {
        "commands": "\n\n".join(_commands(context)),
        "chat_commands": table(
            ("command", "what it does"),
            [
                *((f"`{each.usage}`", each.help) for each in LOCAL.values()),
                *((f"`{usage(c)}`", c.help) for c in all_commands() if c.where != "shell"),
            ],
        ),
    }


def _commands(context: Any) -> Iterator[str]:
    """The help of a command and of all below it (the classes are typer's own, hence Any)."""
    command, path = context.command, context.command_path
    level = "##" if path.count(" ") < 2 else "###"
    yield f"{level} {path}\n\n```text\n{command.get_help(context).rstrip()}\n```"
    for name, below in getattr(command, "commands", {}).items():
        yield from _commands(
            below.context_class(below, info_name=name, parent=context, terminal_width=WIDTH)
        )
