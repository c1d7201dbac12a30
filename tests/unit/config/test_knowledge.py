"""Knowledge and skills in the YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.app.preflight import load_valid
from hubbub.app.prompts import agent_prompts
from hubbub.app.readings import readings
from hubbub.config.knowledge import KnowledgeConfig
from hubbub.config.models import NetworkFile
from hubbub.config.schema import json_schema
from hubbub.errors import ConfigError
from tests.unit.config.conftest import Loading, Problems, Write

HEAD = "network: {auth: open}\nmodels: {default: {model: m, api_key: x}}\n"
SKILL = "---\nname: refunds\ndescription: Pay money back.\n---\nBe kind.\n"


def test_folders_of_the_network_and_of_an_agent_are_searched_together(
    tmp_path: Path, write: Write, loading: Loading
) -> None:
    for name in ("faq", "conf/desk", "conf/notes"):
        write(f"{name}/a.md", "text")
    write(
        "conf/part.yaml",
        "knowledge: {folders: [../faq], max_file: 2MiB, max_files: 3}\n"
        "agents: {a: {knowledge: [desk, notes, ../faq]}, b: {}}\n",
    )
    file = loading(f"{HEAD}include: conf/part.yaml\n").file
    assert file.knowledge.folders == [str(tmp_path / "faq")]
    assert file.agents["a"].knowledge.folders == [
        str(tmp_path / name) for name in ("conf/desk", "conf/notes", "faq")
    ]
    merged = file.agent("a").knowledge
    assert merged.folders == [str(tmp_path / name) for name in ("faq", "conf/desk", "conf/notes")]
    assert (merged.max_file, merged.max_files) == (2 * 1024**2, 5000)
    assert file.agent("b").knowledge.folders == file.knowledge.folders


def test_without_folders_there_is_no_tool(loading: Loading) -> None:
    loaded = loading(f"{HEAD}agents: {{a: {{}}}}\n")
    assert loaded.file.agent("a").knowledge == KnowledgeConfig()
    names = agent_prompts(loaded)["a"].toolbox.names
    assert not {"search_knowledge", "load_skill"} & set(names)


@pytest.mark.behaviour("E-7")
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("knowledge: [fqa]", "the folder fqa does not exist; did you mean 'faq'?"),
        ("knowledge: [nowhere]", "the folder nowhere does not exist"),
        ("knowledge: {folders: [fqa]}", "the folder fqa does not exist; did you mean 'faq'?"),
        (
            "knowledge: [faq/a.md]",
            "faq/a.md is a file; knowledge is a folder of Markdown files",
        ),
        (
            "knowledge: faq",
            "agents.a.knowledge is 'faq': expected keys with values",
        ),
        (
            "knowledge: {folder: [faq]}",
            "unknown key 'folder' in agents.a.knowledge; did you mean 'folders'?",
        ),
        ("knowledge: [1]", "agents.a.knowledge[1] is 1: expected text"),
        ("skills: [fqa]", "the folder fqa does not exist; did you mean 'faq'?"),
        ("skills: [faq/b.md]", "the file faq/b.md does not exist; did you mean 'a.md'?"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(
    write: Write, problems: Problems, given: str, told: str
) -> None:
    write("faq/a.md", "text")
    assert problems(f"{HEAD}agents:\n  a:\n    {given}\n") == [f"net.yaml:5: {told}"]


@pytest.mark.behaviour("E-7")
def test_the_networks_folders_are_checked_too(problems: Problems) -> None:
    assert problems(f"{HEAD}knowledge:\n- nowhere\n") == [
        "net.yaml:4: the folder nowhere does not exist"
    ]


class TestTools:
    def valid(self, write: Write, agent: str) -> Path:
        write("faq/a.md", "text")
        write("skills/refunds.md", SKILL)
        return write("net.yaml", f"{HEAD}agents:\n  a: {agent}\n")

    def names(self, path: Path) -> set[str]:
        return set(agent_prompts(load_valid(path))["a"].toolbox.names)

    @pytest.mark.parametrize(
        "tools",
        ["", "tools: [reply], ", "tools: [search_knowledge, reply, load_skill], "],
    )
    def test_they_come_on_top_of_those_that_are_named(self, write: Write, tools: str) -> None:
        path = self.valid(write, f"{{{tools}knowledge: [faq], skills: [skills]}}")
        assert {"search_knowledge", "load_skill"} <= self.names(path)

    def test_they_can_be_disabled(self, write: Write) -> None:
        disabled = "disabled_tools: [search_knowledge, load_skill]"
        path = self.valid(write, f"{{{disabled}, knowledge: [faq], skills: [skills]}}")
        assert not {"search_knowledge", "load_skill"} & self.names(path)
        assert "refunds" not in readings(agent_prompts(load_valid(path))["a"])[0].text

    def test_they_are_there_for_agents_that_only_read(self, write: Write) -> None:
        path = self.valid(write, "{permission_mode: read_only, knowledge: [faq], skills: [skills]}")
        assert {"search_knowledge", "load_skill"} <= self.names(path)

    @pytest.mark.parametrize("tool", ["search_knowledge", "load_skill"])
    def test_they_cannot_be_named_where_there_is_nothing_to_search_or_load(
        self, write: Write, tool: str
    ) -> None:
        path = self.valid(write, f"{{tools: [{tool}]}}")
        with pytest.raises(ConfigError, match=f"agents.a.tools: there is no tool '{tool}'"):
            load_valid(path)

    @pytest.mark.behaviour("E-6")
    def test_the_prompt_names_the_skills(self, write: Write) -> None:
        path = self.valid(write, "{skills: [skills/refunds.md], instruction: Help.}")
        text = readings(agent_prompts(load_valid(path))["a"])[0].text
        assert "Load one with `load_skill` before such work:\n- `refunds`: Pay money back." in text
        assert "Be kind" not in text

    @pytest.mark.behaviour("E-7")
    def test_a_broken_skill_is_found_before_anything_starts(self, write: Write) -> None:
        path = self.valid(write, "{skills: [skills]}")
        write("skills/broken.md", "---\nname: broken\n---\nBody.\n")
        with pytest.raises(ConfigError) as caught:
            load_valid(path)
        assert str(caught.value) == (
            "skills/broken.md:1: the front matter needs the key 'description', with a text"
        )

    def test_only_models_have_skills(self, write: Write) -> None:
        names = self.names(self.valid(write, "{kind: router, knowledge: [faq]}"))
        assert "search_knowledge" in names
        assert "load_skill" not in names
        with pytest.raises(ConfigError, match="`skills` has no effect"):
            self.names(self.valid(write, "{kind: router, skills: [skills], knowledge: [faq]}"))


def test_the_schema_for_editors_takes_both_forms() -> None:
    schema = json_schema()
    properties = schema["properties"]
    assert isinstance(properties, dict)
    given = properties["knowledge"]
    assert isinstance(given, dict)
    options = given["anyOf"]
    assert isinstance(options, list)
    kinds = [option["type"] for option in options if isinstance(option, dict)]
    assert kinds == ["array", "object"]
    both = [{"knowledge": ["a"]}, {"knowledge": {"folders": ["a"]}}]
    first, second = (NetworkFile.model_validate(one) for one in both)
    assert first == second
