"""Files to begin from: a network that runs as it is and explains itself (`hubbub init`), and a
first mod of one's own with its test (`hubbub mods new`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from string import Template

from hubbub.app.providers import ModelProposal, models_section

__all__ = ["mod_files", "starter_files"]

_EXAMPLE = ModelProposal(
    "qwen3:8b", "http://127.0.0.1:11434/v1", None, "for example with Ollama on this machine"
)


def starter_files(proposals: Sequence[ModelProposal]) -> dict[str, str]:
    """The texts by file name. With a model within reach the network has an agent that uses it."""
    folder = files("hubbub.app").joinpath("starter_files")
    template = Template(folder.joinpath("hubbub.yaml.txt").read_text(encoding="utf-8"))
    models = models_section(proposals or [_EXAMPLE])
    assistant = folder.joinpath("assistant.yaml.txt").read_text(encoding="utf-8")
    if not proposals:
        models, assistant = _commented(models), _commented(assistant, "  ")
    return {
        "hubbub.yaml": template.substitute(models=models, assistant=assistant),
        "agents/greeter.py": folder.joinpath("greeter.py.txt").read_text(encoding="utf-8"),
    }


def _commented(text: str, indent: str = "") -> str:
    """Every line as a comment that becomes YAML again when the `# ` is taken away."""
    return "".join(
        f"{indent}# {line.removeprefix(indent)}\n" if line else "\n" for line in text.splitlines()
    )


# A mod -------------------------------------------------------------------------------------------

_MOD = '''"""The mod `{name}`: counts who is thanked.

mods:
  - mods/{name}.py:{class_name}: {{word: thanks}}
"""

from __future__ import annotations

from collections.abc import Sequence

from hubbub.mods.api import Mod, ModConfig
from hubbub.mods.operation import Calling, operation
from hubbub.mods.rows import Statement
from hubbub.protocol.messages import Message
from hubbub.protocol.operations import Input
from pydantic import BaseModel


class {class_name}Config(ModConfig):
    word: str = "thanks"
    """The word that counts."""


class CountOf(Input):
    participant: str
    """Whose count."""


class Count(BaseModel):
    participant: str
    count: int


class {class_name}(Mod):
    """Counts how often each participant is thanked."""

    name = "{name}"
    Config = {class_name}Config
    config: {class_name}Config
    migrations = "{name}_tables"

    def on_stored(self, message: Message) -> Sequence[Statement]:
        if self.config.word not in message.text.lower():
            return ()
        thanked = message.recipients or message.mentions
        return [Statement(_COUNT, (participant,)) for participant in thanked]

    @operation()
    async def {name}_count(self, call: Calling, args: CountOf) -> Count:
        """Tell how often a participant was thanked."""
        sql = "SELECT count FROM {name}_count WHERE participant = ?"
        rows = await self.host.rows(sql, args.participant)
        return Count(participant=args.participant, count=rows[0][0] if rows else 0)


_COUNT = """
INSERT INTO {name}_count (participant, count) VALUES (?, 1)
ON CONFLICT (participant) DO UPDATE SET count = count + 1
"""
'''

_TABLES = """CREATE TABLE {name}_count (
    participant TEXT PRIMARY KEY,
    count INTEGER NOT NULL
) WITHOUT ROWID;
"""

_TEST = """from __future__ import annotations

import asyncio

from hubbub.testing.mod_contract import mod_contract
from hubbub.testing.network import LocalNetwork
from {name} import {class_name}, {class_name}Config

test_it_is_a_good_neighbour = mod_contract({class_name})


def test_who_is_thanked_is_counted() -> None:
    async def talk() -> object:
        async with LocalNetwork(mods=[{class_name}({class_name}Config())]) as network:
            ann = await network.join("ann", kind="human")
            await network.join("bob", kind="human")
            await ann.call("send_text_message", to="bob", text="Thanks!")
            return await ann.call("{name}_count", participant="bob")

    assert asyncio.run(talk()) == {{"participant": "bob", "count": 1}}
"""


def mod_files(name: str) -> Mapping[str, str]:
    """The files of a mod called `name` (a lower-case identifier), by their paths."""
    class_name = name.title().replace("_", "")
    texts = {
        f"{name}.py": _MOD,
        f"{name}_tables/0001_{name}.sql": _TABLES,
        f"test_{name}.py": _TEST,
    }
    return {
        path: text.format(name=name, class_name=class_name)
        if path.endswith(".py")
        else text.replace("{name}", name)
        for path, text in texts.items()
    }
