"""Vectors of a real endpoint choose among many tools."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.agents.models.embeddings import Embeddings
from hubbub.agents.tools.tool_chooser import ToolChooser
from hubbub.config.agents import ModelConfig
from tests.interaction.test_tools_by_likeness import shop
from tests.model.llama import embedding, packaged


@pytest.mark.behaviour("K-15")
async def test_llama_cpp_says_which_tools_are_like_a_question(tmp_path: Path) -> None:
    specs = [tool.spec for tool in shop()]
    with embedding(packaged()) as url:
        embed = Embeddings(ModelConfig(model="any", base_url=url), tmp_path)
        found = await ToolChooser(2, embed).choose("Where is my parcel?", specs)
        await embed.close()
    assert found.note is None
    assert len(found.names) == 2
    assert "track_parcel" in found.names
