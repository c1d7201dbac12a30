"""`search_knowledge` as a model calls it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import TypedDict

import pytest

from hubbub.agents.knowledge import KnowledgeBase, SearchKnowledge
from hubbub.agents.tools.call_runner import ToolPolicy
from hubbub.agents.tools.toolbox import Toolbox
from tests.unit.agents.calling import failed, text


class SearchResult(TypedDict, total=False):
    hits: list[dict[str, object]]
    hits_cut: str
    matches: int
    not_searched: list[str]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "handbook"
    folder.mkdir()
    (folder / "returns.md").write_text("# Returns\n\n## Lamps\n\nThirty days.\n")
    return folder


def box(folder: Path, budget: int = 4000) -> Toolbox:
    return Toolbox([SearchKnowledge(KnowledgeBase([folder]))], ToolPolicy(budget=budget))


async def search(tools: Toolbox, query: str, **more: int) -> SearchResult:
    result: SearchResult = json.loads(await text(tools, "search_knowledge", query=query, **more))
    return result


@pytest.mark.behaviour("E-1")
async def test_hits_have_their_source_and_the_description_names_the_folders(
    folder: Path,
) -> None:
    assert await search(box(folder), "days") == {
        "hits": [
            {"file": "returns.md", "line": 5, "heading": "Returns > Lamps", "text": "Thirty days."}
        ]
    }
    other = folder.parent / "faq"
    other.mkdir()
    tool = SearchKnowledge(KnowledgeBase([folder, other]))
    assert "(handbook, faq)" in tool.spec.description
    assert "(handbook)" in SearchKnowledge(KnowledgeBase([folder])).spec.description
    assert str(folder.parent) not in json.dumps(tool.spec.parameters) + tool.spec.description


@pytest.mark.behaviour("E-4")
async def test_unsearchable_files_and_folders_are_reported(folder: Path) -> None:
    for n in range(7):
        (folder / f"{n}.md").write_bytes(b"\xff")
    result = await search(box(folder), "days")
    assert len(result["hits"]) == 1
    assert result["not_searched"][0] == "0.md: not UTF-8 text (line 1)"
    assert result["not_searched"][5:] == ["… and 2 more"]
    tools = box(folder)
    shutil.rmtree(folder)
    result = await search(tools, "days")
    assert result["not_searched"] == ["handbook: No such file or directory"]


async def test_the_number_of_matches_is_shown_when_some_are_left_out(folder: Path) -> None:
    for n in range(9):
        (folder / f"{n}.md").write_text("days")
    result = await search(box(folder), "days")
    assert (len(result["hits"]), result["matches"]) == (5, 10)
    result = await search(box(folder), "days", limit=20)
    assert len(result["hits"]) == 10
    assert "matches" not in result
    cases: list[object] = [0, 21, 2.5, "x", True]
    for limit in cases:
        error = await failed(box(folder), "search_knowledge", query="x", limit=limit)  # type: ignore[arg-type]  # invalid on purpose
        assert error["error"] == "invalid_arguments"


@pytest.mark.behaviour("E-5")
async def test_hits_over_the_budget_are_left_out_whole(folder: Path) -> None:
    for n in range(9):
        (folder / f"{n}.md").write_text(f"# {n}\n" + "days " * 200)
    result = await search(box(folder, budget=700), "days", limit=10)
    assert 1 <= len(result["hits"]) < 5
    assert "hits_cut" in result
    assert all(str(hit["text"]).endswith("days") for hit in result["hits"])
