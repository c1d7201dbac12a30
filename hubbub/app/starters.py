"""The files that `hubbub init` writes: a network that runs as it is and explains itself."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from string import Template

from hubbub.app.providers import ModelProposal, models_section

__all__ = ["starter_files"]

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
