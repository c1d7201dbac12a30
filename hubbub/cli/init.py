"""`init`: a starter network, with the models that this machine can reach."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import Annotated

import typer

from hubbub.app.providers import ModelProposal, models_section
from hubbub.cli.output import JsonFlag, emit_json
from hubbub.errors import UserError

__all__ = ["mod_class", "mod_files", "register", "starter_files", "write_files"]


def register(app: typer.Typer, word: str) -> None:
    app.command()(init)


def init(
    folder: Annotated[
        Path, typer.Argument(help="The folder to write to; created if missing.")
    ] = Path(),
    force: Annotated[bool, typer.Option("--force", help="Overwrite existing files.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a commented starter network: hubbub.yaml and an agent in Python."""
    from hubbub.app.providers import find_models
    from hubbub.cli.connection import run_async

    proposals = run_async(find_models(os.environ))
    files = {folder / name: text for name, text in starter_files(proposals).items()}
    if (folder / _IGNORED).exists():  # it belongs to the repository
        del files[folder / _IGNORED]
    write_files(files, force=force)
    if as_json:
        models = [vars(proposal) for proposal in proposals]
        emit_json({"files": [str(path) for path in files], "models": models})
        return
    for path in files:
        typer.echo(f"wrote {path}")
    if proposals:
        typer.echo(f"model: {proposals[0].model} ({proposals[0].source})")
    else:
        typer.echo(
            "no model is available; the network runs without one, and hubbub.yaml shows how to add "
            "one"
        )
    typer.echo(f"start it: hubbub up {folder / 'hubbub.yaml'}")


def write_files(files: Mapping[Path, str], *, force: bool) -> None:
    """Write all files, or none if one exists and `force` is not set. Raises `UserError`."""
    _check_new([] if force else list(files))
    for path, text in files.items():
        _write(path, text)


def _check_new(paths: list[Path]) -> None:
    existing = [str(path) for path in paths if path.exists()]
    if existing:
        raise UserError(
            f"would overwrite {' and '.join(existing)}: name another folder, or use --force"
        )


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None


_IGNORED = ".gitignore"
_EXAMPLE = ModelProposal(
    "qwen3:8b", "http://127.0.0.1:11434/v1", None, "for example with Ollama on this machine"
)


def starter_files(proposals: Sequence[ModelProposal]) -> dict[str, str]:
    """File contents by name. With a model available, the network has an agent that uses it."""
    models, concierge = models_section(proposals or [_EXAMPLE]), _text("concierge.yaml.txt")
    if not proposals:
        models, concierge = _commented(models), _commented(concierge, "  ")
    template = Template(_text("hubbub.yaml.txt"))
    return {
        "hubbub.yaml": template.substitute(models=models, concierge=concierge),
        "agents/greeter.py": _text("greeter.py.txt"),
        _IGNORED: _text("gitignore.txt"),
    }


def mod_files(name: str) -> Mapping[str, str]:
    """The files of a mod called `name` (a lower-case identifier), by path."""
    values = {"name": name, "class_name": mod_class(name)}
    paths = {
        f"{name}.py": "mod.py.txt",
        f"{name}_tables/0001_{name}.sql": "mod_tables.sql.txt",
        f"test_{name}.py": "test_mod.py.txt",
    }
    return {path: Template(_text(file)).substitute(values) for path, file in paths.items()}


def mod_class(name: str) -> str:
    """The class of a mod called `name`, unlike all names that its file imports or defines."""
    class_name = name.title().replace("_", "")
    taken = re.search(rf"\b{class_name}\b", _text("mod.py.txt"))
    return f"{class_name}Mod" if taken else class_name


def _text(file: str) -> str:
    return resources.files("hubbub.cli").joinpath("starter_files", file).read_text(encoding="utf-8")


def _commented(text: str, indent: str = "") -> str:
    """Each line as a comment that becomes YAML again without the `# `."""
    return "".join(
        f"{indent}# {line.removeprefix(indent)}\n" if line else "\n" for line in text.splitlines()
    )
