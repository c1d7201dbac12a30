"""The documentation says what the code does, and its links and examples hold."""

from __future__ import annotations

import ast
import importlib
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, get_args

import pytest
import typer

from hubbub.agents.python.agent import Agent
from hubbub.app.preflight import load_valid
from hubbub.cli.app import program
from hubbub.config.loader import load
from hubbub.protocol.turns import Outcome
from hubbub.testing.model_script import load_script
from tests.doc_pages import ROOT, Block, anchors, blocks, example, links, pages

PAGES = {str(page.relative_to(ROOT)): page for page in pages()}
each_page = pytest.mark.parametrize("page", PAGES.values(), ids=PAGES.keys())


def _generated() -> Mapping[Path, str]:
    folder = str(ROOT / "docs")  # as when the program itself is run
    sys.path.insert(0, folder)
    try:
        module = importlib.import_module("generate")
    finally:
        sys.path.remove(folder)
    made: Callable[[], Mapping[Path, str]] = module.pages
    return made()


@pytest.mark.behaviour("P-31", "H-104")
def test_the_reference_pages_are_what_the_code_says() -> None:
    stale = [path.name for path, text in _generated().items() if path.read_text("utf-8") != text]
    assert stale == [], "run `make docs`"


def test_every_part_of_the_protocol_has_a_word_of_explanation() -> None:
    page = ROOT / "docs" / "reference" / "protocol.md"
    text = page.read_text("utf-8")
    for heading in ("## Error codes", "## Close codes"):
        table = text.partition(heading)[2].partition("\n##")[0]
        rows = [line for line in table.splitlines() if line.startswith("| `") or "| 4" in line[:4]]
        assert len(rows) > 10
        assert [row for row in rows if row.endswith("|  |")] == []


@each_page
def test_links_lead_somewhere(page: Path) -> None:
    for target in links(page):
        if target.startswith(("http://", "https://")):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), target


def _of(language: str) -> list[Block]:
    return [block for page in pages() for block in blocks(page) if block.language == language]


def test_python_in_the_pages_is_python() -> None:
    shown = _of("python")
    assert len(shown) >= 4
    for block in shown:
        ast.parse(block.text, str(block.page))


def _commands(text: str) -> Iterator[list[str]]:
    """The lines of a shell example that call hubbub, as words after the program's name."""
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        while words and "=" in words[0]:
            del words[0]
        if words and Path(words[0]).name == "hubbub":
            yield words[1:]


def test_commands_in_the_pages_exist_with_their_options() -> None:
    found = [(block, words) for block in _of("sh") for words in _commands(block.text)]
    assert len(found) > 20
    for block, words in found:
        command: Any = typer.main.get_command(program())  # of typer's own classes
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        used = {word.partition("=")[0] for word in words if word.startswith("-")}
        assert used <= known, f"{block.page.name}: {used - known}"
        assert not hasattr(command, "commands"), f"{block.page.name}: {words}"


def test_the_python_agent_of_the_readme_has_ten_lines() -> None:
    assert len(example("README.md", "notes.py").strip().splitlines()) == 10


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "files", "config"),
    [
        ("README.md", ["newsroom.yaml"], "newsroom.yaml"),
        ("docs/tutorial.md", ["first/hubbub.yaml"], "first/hubbub.yaml"),
        ("docs/tutorial.md", ["poll.py", "hubbub.yaml"], "hubbub.yaml"),
        ("docs/reference/python.md", ["greeter.py", "town.yaml"], "town.yaml"),
        ("docs/how-to/give-a-model-your-own-tools.md", ["stock.py", "shop.yaml"], "shop.yaml"),
        (
            "docs/how-to/build-a-system-prompt.md",
            ["prompts/triage/1.0.j2", "desk.yaml"],
            "desk.yaml",
        ),
        (
            "docs/how-to/give-a-model-your-own-tools.md",
            ["stock.py", "pay.py", "careful.yaml"],
            "careful.yaml",
        ),
        ("docs/how-to/stay-in-charge.md", ["files.py", "office.yaml"], "office.yaml"),
        ("docs/explanation/context-window.md", ["small.yaml"], "small.yaml"),
        ("docs/how-to/use-mcp-servers.md", ["library.py", "reading.yaml"], "reading.yaml"),
        (
            "docs/how-to/give-an-agent-knowledge.md",
            ["handbook/returns.md", "skills/refund.md", "shop.yaml"],
            "shop.yaml",
        ),
        ("docs/how-to/plan-with-several-models.md", ["costs.py", "office.yaml"], "office.yaml"),
    ],
)
def test_configs_in_the_pages_are_valid(
    page: str, files: list[str], config: str, tmp_path: Path
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(example(page, name))
    assert load_valid(tmp_path / config).file.network.name


def test_the_prompt_of_the_how_to_is_built_as_it_says() -> None:
    found: dict[str, object] = {}
    exec(example("docs/how-to/build-a-system-prompt.md", "parts.py"), found)
    parts = str(found["text"]).split("\n\n")
    assert parts[:2] == ["Be kind.", "You write for desk."]


@pytest.mark.slow
def test_the_steps_of_the_tutorial_lead_to_its_last_config(tmp_path: Path) -> None:
    (tmp_path / "poll.py").write_text(example("docs/tutorial.md", "poll.py"))
    steps = {
        "second.yaml": example("docs/tutorial.md", "first/hubbub.yaml")
        + example("docs/tutorial.md", "poll.yaml"),
        "last.yaml": example("docs/tutorial.md", "hubbub.yaml"),
    }
    for name, text in steps.items():
        (tmp_path / name).write_text(text)
    second, last = (load_valid(tmp_path / name).file for name in steps)
    assert second.agents["poll"] == last.agents["poll"]
    assert (second.channels, second.humans) == (last.channels, last.humans)


SECRETS = {"AUDIT_SECRET": "correct horse battery", "CI_SECRET": "correct horse battery"}
"""What a reader has in the environment who follows a page that says so."""


def test_yaml_fragments_in_the_pages_are_valid_too(tmp_path: Path) -> None:
    fragments = [block for block in _of("yaml") if block.name is None]
    assert len(fragments) >= 3
    for block in fragments:
        place = tmp_path / "fragment.yaml"
        place.write_text(block.text)
        assert load(place, environ=SECRETS).file


def test_the_scripted_model_of_the_tutorial_is_a_script(tmp_path: Path) -> None:
    place = tmp_path / "model.yaml"
    place.write_text(example("docs/tutorial.md", "model.yaml"))
    assert len(load_script(place).rules) == 3


def test_the_script_of_the_reference_is_one(tmp_path: Path) -> None:
    place = tmp_path / "script.yaml"
    place.write_text(example("docs/reference/model-server.md", "script.yaml"))
    script = load_script(place)
    assert (len(script.rules), len(script.answers)) == (4, 1)


@pytest.mark.parametrize("name", ["python.md", "model-server.md"])
def test_everything_in_the_generated_tables_has_a_meaning(name: str) -> None:
    text = (ROOT / "docs" / "reference" / name).read_text("utf-8")
    rows = [line for line in text.splitlines() if line.startswith("| `")]
    assert len(rows) > 10
    assert [row for row in rows if row.endswith("|  |")] == []


def test_the_page_about_agents_in_python_has_all_that_they_inherit() -> None:
    text = (ROOT / "docs" / "reference" / "python.md").read_text("utf-8")
    public = [name for name in vars(Agent) if not name.startswith("_")]
    assert len(public) > 15
    handlers = {name for name in public if name.startswith("on_")}
    attributes = {"name", "settings", "log"} & set(public)
    for name in public:
        listed = f"| `{name}" if name in handlers | attributes else f"### {name}\n"
        assert listed in text, name


def test_decisions_are_numbered_and_listed() -> None:
    folder = ROOT / "docs" / "decisions"
    records = sorted(folder.glob("0*.md"))
    assert [int(record.name[:4]) for record in records] == list(range(1, len(records) + 1))
    assert set(links(folder / "README.md")) == {record.name for record in records}
    for record in records:
        parts = record.read_text("utf-8").split("\n## ")
        assert [part.splitlines()[0] for part in parts[1:]] == [
            "Context",
            "Decision",
            "Consequence",
        ]


def test_every_outcome_of_a_turn_is_explained() -> None:
    text = (ROOT / "docs" / "reference" / "prompt.md").read_text("utf-8")
    table = text.partition("## How a turn ends")[2]
    told = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
    assert told == set(get_args(Outcome))


def test_every_field_of_a_network_is_explained() -> None:
    text = (ROOT / "docs" / "reference" / "config.md").read_text("utf-8")
    assert [
        line for line in text.splitlines() if line.startswith("| `") and line[-4:] == "|  |"
    ] == []
