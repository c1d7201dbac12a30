"""The documentation matches the code, and its links and examples are valid."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, get_args

import pytest

from hubbub.agents.prompt.context import PromptContext
from hubbub.agents.python.agent import Agent
from hubbub.app.preflight import load_valid
from hubbub.cli.app import command_of, program
from hubbub.config.loader import load
from hubbub.protocol.turns import Outcome
from hubbub.testing.model_script import load_script
from tests.doc_pages import ROOT, Block, anchors, blocks, example, links, pages

EMPTY = "|  |"
"""The end of a table row whose last cell is empty."""


def _generated() -> Mapping[Path, str]:
    folder = str(ROOT / "docs")  # as when the script runs as a program
    sys.path.insert(0, folder)
    try:
        module = importlib.import_module("generate")
    finally:
        sys.path.remove(folder)
    generate: Callable[[], Mapping[Path, str]] = module.pages
    return generate()


@pytest.mark.behaviour("P-31", "H-104")
def test_the_reference_pages_are_up_to_date() -> None:
    stale = [path.name for path, text in _generated().items() if path.read_text("utf-8") != text]
    assert stale == [], "run `make docs`"


def test_every_row_of_the_generated_tables_has_a_description() -> None:
    reference = ROOT / "docs" / "reference"
    names = ("python.md", "model-server.md", "config.md", "protocol.md")
    *tables, protocol = ((reference / name).read_text("utf-8") for name in names)
    for heading in ("## Error codes", "## Close codes"):
        tables.append(protocol.partition(heading)[2].partition("\n##")[0])
    for table in tables:
        rows = [line for line in table.splitlines() if line.startswith(("| `", "| 4"))]
        assert len(rows) > 10
        assert [row for row in rows if row.endswith(EMPTY)] == []


def test_every_type_in_the_tables_of_the_wire_is_described() -> None:
    reference = ROOT / "docs" / "reference"
    text = "".join(
        (reference / f"{name}.md").read_text("utf-8") for name in ("operations", "protocol")
    )
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    named = {name for row in rows for name in re.findall(r"\b(?:[A-Z][a-z]+)+$", row[1])}
    assert len(named) > 20
    assert named - set(re.findall("^### (.+)", text, re.MULTILINE)) == set()


def test_every_local_link_has_a_target() -> None:
    for page in pages():
        for target in links(page):
            if target.startswith(("http://", "https://")):
                continue
            path, _, anchor = target.partition("#")
            file = (page.parent / path).resolve() if path else page
            assert file.exists(), f"{page.name}: {target}"
            assert not anchor or anchor in cached_anchors(file), f"{page.name}: {target}"


cached_anchors = cache(anchors)


def test_code_that_pages_name_exists() -> None:
    hubbub = ROOT / "hubbub"
    static = hubbub / "web" / "static"
    files = [*hubbub.rglob("*.py"), *static.rglob("*.js"), *(ROOT / "tests").rglob("*.py")]
    words = set(re.findall(r"\w+", "".join(file.read_text("utf-8") for file in files)))
    for page in pages():
        if page.parent.name == "decisions":
            continue  # they name what was there at the time
        text = page.read_text("utf-8")
        prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
        for name in re.findall(r"`([^`\n]+)`", prose):
            if re.fullmatch(r"_[a-z_]+|(?:[A-Z][a-z]+)+", name):
                in_example = text.count(name) > prose.count(name)
                assert name in words or in_example, f"{page.name}: {name}"
            if re.fullmatch(r"(?:agents|app|core|network|parts|protocol)/[\w/-]+\.(?:py|js)", name):
                assert any((base / name).exists() for base in (hubbub, static)), page.name + name


def test_site_pages_link_only_to_site_pages() -> None:
    site = ROOT / "docs"
    for page in pages():
        if site in page.parents:
            local = [each for each in links(page) if "://" not in each]
            targets = [(page.parent / each.partition("#")[0]).resolve() for each in local]
            assert [f"{each}" for each in targets if not each.is_relative_to(site)] == []


def test_every_page_is_in_the_menu_of_the_site() -> None:
    menu = (ROOT / "zensical.toml").read_text("utf-8")
    site = ROOT / "docs"
    names = [str(page.relative_to(site)) for page in pages() if site in page.parents]
    listed = [name for name in names if not name.startswith("decisions/0")]
    assert [name for name in listed if f'"{name}"' not in menu] == []


def test_every_test_named_by_the_guarantees_exists() -> None:
    named = re.findall(r"`(tests/[\w/.]+)`", (ROOT / "docs/explanation/guarantees.md").read_text())
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_cell_of_the_table_of_doors_names_an_existing_test() -> None:
    text = (ROOT / "docs/explanation/guarantees.md").read_text()
    table = text.partition("## Through the doors")[2].partition("\n## ")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines() if line.startswith("|")]
    cells = [cell for row in rows[2:] for cell in row[1:]]
    assert len(cells) == 8 * 8
    tests = [re.findall(r"`(test_\w+\.py)`", cell) for cell in cells]
    assert all(tests), [cell for cell, named in zip(cells, tests, strict=True) if not named]
    places = ("interaction", "e2e", "frameworks")
    missing = {
        name
        for named in tests
        for name in named
        if not any((ROOT / "tests" / place / name).exists() for place in places)
    }
    assert missing == set()


def _blocks_in(language: str) -> list[Block]:
    return [block for page in pages() for block in blocks(page) if block.language == language]


def test_python_examples_parse() -> None:
    python_blocks = _blocks_in("python")
    assert len(python_blocks) >= 4
    for block in python_blocks:
        ast.parse(block.text, str(block.page))
    assert len(example("README.md", "notes.py").strip().splitlines()) == 10, "as README says"


def _commands(text: str) -> Iterator[list[str]]:
    """The calls of hubbub in a shell example, as lists of arguments."""
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        while words and "=" in words[0]:
            del words[0]
        if words and Path(words[0]).name == "hubbub":
            yield words[1:]


def test_shell_examples_use_existing_commands_and_options() -> None:
    calls = [(block, words) for block in _blocks_in("sh") for words in _commands(block.text)]
    assert len(calls) > 20
    whole: Any = command_of(program())  # of typer's own classes
    for block, words in calls:
        command = whole
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        known = {option for parameter in command.params for option in parameter.opts}
        used = {word.partition("=")[0] for word in words if word.startswith("-")}
        assert used <= known, f"{block.page.name}: {used - known}"
        assert used or not hasattr(command, "commands"), f"{block.page.name}: {words}"


CONFIGS = [
    ("docs/how-to/make-an-agent-with-a-model.md", ["newsroom.yaml"]),
    ("docs/tutorial.md", ["first/hubbub.yaml"]),
    ("docs/tutorial.md", ["poll.py", "hubbub.yaml"]),
    ("docs/reference/python.md", ["greeter.py", "town.yaml"]),
    ("docs/how-to/give-a-model-your-own-tools.md", ["stock.py", "shop.yaml"]),
    ("docs/how-to/use-hubbub-in-python.md", ["refunds.py", "refunds.yaml"]),
    ("docs/how-to/build-a-system-prompt.md", ["prompts/triage/1.0.j2", "desk.yaml"]),
    ("docs/how-to/give-a-model-your-own-tools.md", ["stock.py", "pay.py", "careful.yaml"]),
    ("docs/how-to/stay-in-charge.md", ["files.py", "office.yaml"]),
    ("docs/explanation/context-window.md", ["small.yaml"]),
    ("docs/how-to/use-mcp-servers.md", ["library.py", "reading.yaml"]),
    (
        "docs/how-to/give-an-agent-knowledge.md",
        ["handbook/returns.md", "skills/refund.md", "shop.yaml"],
    ),
    ("docs/how-to/plan-with-several-models.md", ["costs.py", "office.yaml"]),
]
"""Pages with a config, and the files that it needs; the config is the last."""


@pytest.mark.slow
def test_config_examples_are_valid(tmp_path: Path) -> None:
    for n, (page, files) in enumerate(CONFIGS):
        folder = tmp_path / str(n)
        for name in files:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(example(page, name))
        assert load_valid(folder / files[-1]).file.network.name, (page, files)


async def test_the_prompt_of_the_how_to_is_built_as_documented() -> None:
    names: dict[str, Any] = {}
    exec(example("docs/how-to/build-a-system-prompt.md", "parts.py"), names)
    context = PromptContext(agent="a", network="n", instruction="Be kind.", thread="direct_ann")
    parts = (await names["builder"].awaited(context)).build(context).split("\n\n")
    assert parts[:2] == ["Be kind.", "Write plainly."]
    assert "In stock: 7 chairs." in parts


def test_the_steps_of_the_tutorial_produce_its_last_config(tmp_path: Path) -> None:
    (tmp_path / "poll.py").write_text(example("docs/tutorial.md", "poll.py"))
    steps = {
        "second.yaml": example("docs/tutorial.md", "first/hubbub.yaml")
        + example("docs/tutorial.md", "poll.yaml"),
        "last.yaml": example("docs/tutorial.md", "hubbub.yaml"),
    }
    for name, text in steps.items():
        (tmp_path / name).write_text(text)
    second, last = (load(tmp_path / name, environ={}).file for name in steps)
    assert second.agents["poll"] == last.agents["poll"]
    assert (second.channels, second.humans) == (last.channels, last.humans)


SECRETS = {
    "HUBBUB_GATEWAY_TOKEN": "a token for gateways",
    "AUDIT_SECRET": "correct horse battery",
    "CI_SECRET": "correct horse battery",
}
"""Environment variables that the pages ask the reader to set."""


def test_yaml_fragments_are_valid(tmp_path: Path) -> None:
    fragments = [block for block in _blocks_in("yaml") if block.name is None]
    assert len(fragments) >= 3
    for block in fragments:
        place = tmp_path / "fragment.yaml"
        place.write_text(block.text)
        assert load(place, environ=SECRETS).file


def test_model_script_examples_load(tmp_path: Path) -> None:
    place = tmp_path / "script.yaml"
    place.write_text(example("docs/tutorial.md", "model.yaml"))
    assert len(load_script(place).rules) == 3
    place.write_text(example("docs/reference/model-server.md", "script.yaml"))
    script = load_script(place)
    assert (len(script.rules), len(script.answers)) == (4, 1)


def test_the_python_page_documents_every_public_attribute_of_agents() -> None:
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
    assert len({record.name[:4] for record in records}) == len(records), "numbers are unique"
    assert set(links(folder / "README.md")) == {record.name for record in records}
    for record in records:
        parts = record.read_text("utf-8").split("\n## ")
        assert [part.splitlines()[0] for part in parts[1:]] == [
            "Context",
            "Decision",
            "Consequence",
        ]


def test_every_outcome_of_a_turn_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "prompt.md").read_text("utf-8")
    table = text.partition("## How a turn ends")[2]
    outcomes = {line.split("`")[1] for line in table.splitlines() if line.startswith("| `")}
    assert outcomes == set(get_args(Outcome))


def test_every_public_name_is_in_the_api_reference() -> None:
    import hubbub

    headings = anchors(ROOT / "docs" / "reference" / "python-api.md")
    assert {name.lower() for name in hubbub.__all__ if name[0] != "_"} <= headings


def test_first_prompts_of_the_example_agents_stay_within_2000_tokens() -> None:
    page = (ROOT / "docs" / "reference" / "prompt.md").read_text("utf-8")
    rows = [line.split("|") for line in page.splitlines() if ".yaml | `" in line]
    sizes = {row[1] + row[2]: int(row[5].replace(",", "")) for row in rows}
    assert len(sizes) > 10
    assert max(sizes.values()) <= 2000, sizes
