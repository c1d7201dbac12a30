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
    models, concierge = models_section(proposals or [_EXAMPLE]), _text("concierge.yaml.txt")
    if not proposals:
        models, concierge = _commented(models), _commented(concierge, "  ")
    template = Template(_text("hubbub.yaml.txt"))
    return {
        "hubbub.yaml": template.substitute(models=models, concierge=concierge),
        "agents/greeter.py": _text("greeter.py.txt"),
    }


def mod_files(name: str) -> Mapping[str, str]:
    """The files of a mod called `name` (a lower-case identifier), by their paths."""
    words = {"name": name, "class_name": name.title().replace("_", "")}
    paths = {
        f"{name}.py": "mod.py.txt",
        f"{name}_tables/0001_{name}.sql": "mod_tables.sql.txt",
        f"test_{name}.py": "test_mod.py.txt",
    }
    return {path: Template(_text(file)).substitute(words) for path, file in paths.items()}


def _text(file: str) -> str:
    return files("hubbub.app").joinpath("starter_files", file).read_text(encoding="utf-8")


def _commented(text: str, indent: str = "") -> str:
    """Every line as a comment that becomes YAML again when the `# ` is taken away."""
    return "".join(
        f"{indent}# {line.removeprefix(indent)}\n" if line else "\n" for line in text.splitlines()
    )
