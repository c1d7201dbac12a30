"""Skills: files with front matter, and the tool that loads them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hubbub.agents.skills import LoadSkill, Skill, load_skills, read_skill
from hubbub.agents.tools.toolbox import Toolbox
from hubbub.errors import ConfigError
from tests.unit.agents.calling import failed, text


def skill(
    name: str = "refunds", description: str = "Pay money back.", body: str = "Be kind."
) -> str:
    return f"---\nname: {name}\ndescription: {description}\n---\n\n{body}\n"


def error_of(tmp_path: Path, content: str | bytes) -> str:
    """The error for a skill file with this content, from its line on."""
    path = tmp_path / "s.md"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(ConfigError) as caught:
        read_skill(path)
    assert str(path) in str(caught.value)
    return str(caught.value).removeprefix(str(path))


def test_a_skill_has_a_name_a_description_and_instructions(tmp_path: Path) -> None:
    path = tmp_path / "s.md"
    path.write_text(
        "\ufeff---\nname: refunds\ndescription: >\n  Pay\n  money back.\nlicense: MIT\n"
        "metadata: {by: [ann]}\n---\n# Refunds\n\n---\nBe kind.\n\n"
    )
    assert read_skill(path) == Skill(
        "refunds", "Pay money back.", "# Refunds\n\n---\nBe kind.", path
    )
    for name in ["no", "2024", "null", "1e3"]:
        path.write_text(skill(name, description="true"))
        assert (read_skill(path).name, read_skill(path).description) == (name, "true")


@pytest.mark.behaviour("E-7")
def test_a_broken_skill_is_reported_with_its_line(tmp_path: Path) -> None:
    cases: list[tuple[str | bytes, int, str]] = [
        ("Just text.", 1, "needs a front matter: begin it with a line ---"),
        ("", 1, "needs a front matter"),
        ("---\nname: a\ndescription: b\n", 1, "has no end: put a line --- below it"),
        ("---\nname: a\n---\nbody", 1, "needs the key 'description', with a text"),
        ("---\ndescription: b\nnmae: a\n---\nbody", 3, "(there is 'nmae')"),
        ("---\ndescription: b\nname:\n---\nbody", 3, "needs the key 'name', with a text"),
        ("---\nname: [a]\ndescription: b\n---\nx", 2, "needs the key 'name', with a text"),
        ("---\ndescription: b\nname: a b\n---\nx", 3, "'a b' cannot be the name of a skill"),
        ("---\nname: a\ndescription: b: c\n---\nx", 3, "not valid YAML"),
        ("---\nname: a\n\tdescription: b\n---\nx", 3, "not valid YAML"),
        ("---\nname: *a\n---\nx", 2, "not valid YAML"),
        ("---\nname: \x07\n---\nx", 1, "not valid YAML"),
        ("---\n- name\n---\nx", 1, "needs the keys name and description"),
        ("---\n---\nx", 1, "needs the keys name and description"),
        ("---\nname: a\ndescription: b\n---\n \n", 4, "has no instructions"),
        (b"---\nname: a\ndescription: \xff\n---\nx", 3, "is not UTF-8 text"),
    ]
    for content, line, message in cases:
        error = error_of(tmp_path, content)
        assert error.startswith(f":{line}: ")
        assert message in error
    assert "at most 65536 can be loaded" in error_of(tmp_path, skill(body="x" * 65_537))
    with pytest.raises(ConfigError, match="cannot be read: No such file"):
        read_skill(tmp_path / "nothing.md")


def test_a_folder_contributes_its_files_and_subfolders_with_a_skill(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no skills"):
        load_skills([tmp_path])
    os.mkfifo(tmp_path / "pipe.md")
    with pytest.raises(ConfigError, match="cannot be read: it is no file"):
        load_skills([tmp_path])
    (tmp_path / "pipe.md").unlink()
    for name in ("a.md", "b.md"):
        (tmp_path / name).write_text(skill())
    with pytest.raises(ConfigError, match=r"b\.md: there is a skill 'refunds' already, in .*a"):
        load_skills([tmp_path])
    (tmp_path / "a.md").unlink()
    for name in ("b.md", "a/SKILL.md", "a/notes.md", ".hidden.md", "deep/er/SKILL.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(skill(name.replace("/", "_").split(".")[0] or "x"))
    (tmp_path / "readme.txt").write_text("no skill")
    assert list(load_skills([tmp_path])) == ["a_SKILL", "b"]
    assert list(load_skills([tmp_path / "b.md", tmp_path])) == ["b", "a_SKILL"]


@pytest.mark.behaviour("E-6")
async def test_load_skill_returns_all_instructions_or_suggests_similar_names(
    tmp_path: Path,
) -> None:
    for name in ("refunds", "returns", "greetings"):
        (tmp_path / f"{name}.md").write_text(skill(name, body=f"About {name}."))
    box = Toolbox([LoadSkill(load_skills([tmp_path]))])
    assert await text(box, "load_skill", name=" refunds ") == "About refunds."
    error = await failed(box, "load_skill", name="Refund")
    assert error["error"] == "unknown_skill"
    names = error["valid_names"]
    assert isinstance(names, list)
    assert names[0] == "refunds"
    assert "there are: greetings, refunds, returns" in str(error["message"])
