"""Knowledge and skills in the YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.app.preflight import load_valid
from hubbub.app.prompts import agent_prompts
from hubbub.config.models import NetworkFile
from hubbub.errors import ConfigError
from hubbub.lab.previews import previews
from tests.unit.config.conftest import Loading
from tests.unit.conftest import Write

HEAD = "network: {auth: open}\nmodels: {default: {model: m, api_key: x}}\n"
SKILL = "---\nname: refunds\ndescription: Pay money back.\n---\nBe kind.\n"
BOTH = {"search_knowledge", "load_skill"}


def test_the_knowledge_folders_of_the_network_and_of_an_agent_are_combined(
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
    forms = [{"knowledge": ["a"]}, {"knowledge": {"folders": ["a"]}}]
    assert len({str(NetworkFile.model_validate(form)) for form in forms}) == 1


def write_network(write: Write, agent: str) -> Path:
    write("faq/a.md", "text")
    write("skills/refunds.md", SKILL)
    return write("net.yaml", f"{HEAD}agents:\n  a: {agent}\n")


def test_knowledge_and_skills_add_their_tools_unless_these_are_disabled(write: Write) -> None:
    both = "knowledge: [faq], skills: [skills]"
    disabled = f"{{disabled_tools: [search_knowledge, load_skill], {both}}}"
    for agent, tools in {
        f"{{{both}}}": BOTH,
        f"{{tools: [reply], {both}}}": BOTH,
        f"{{tools: [search_knowledge, reply, load_skill], {both}}}": BOTH,
        f"{{permission_mode: read_only, {both}}}": BOTH,
        disabled: set(),
        "{}": set(),
        "{kind: router, knowledge: [faq]}": {"search_knowledge"},
    }.items():
        prompts = agent_prompts(load_valid(write_network(write, agent)))["a"]
        assert BOTH & set(prompts.toolbox.names) == tools, agent
    prompts = agent_prompts(load_valid(write_network(write, disabled)))["a"]
    assert "refunds" not in previews(prompts)[0].text


@pytest.mark.behaviour("E-7")
def test_tools_without_knowledge_or_skills_and_broken_skills_are_refused(write: Write) -> None:
    write("broken/broken.md", "---\nname: broken\n---\nBody.\n")
    for agent, message in {
        "{tools: [search_knowledge]}": "agents.a.tools: there is no tool 'search_knowledge'",
        "{tools: [load_skill]}": "agents.a.tools: there is no tool 'load_skill'",
        "{kind: router, skills: [skills], knowledge: [faq]}": "`skills` has no effect",
        "{skills: [broken]}": "broken/broken.md:1: the front matter needs the key 'description', "
        "with a text",
    }.items():
        with pytest.raises(ConfigError, match=message):
            load_valid(write_network(write, agent))
