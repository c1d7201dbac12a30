"""Tools are chosen by the embeddings of a real endpoint."""

from __future__ import annotations

from pathlib import Path

import pytest

from hubbub.agents.models.embeddings import Embeddings
from hubbub.agents.tools.tool_chooser import ToolChooser
from hubbub.config.agents import ModelConfig
from tests.interaction.test_tools_by_likeness import shop
from tests.model.llama import embedding, packaged


@pytest.mark.behaviour("K-15")
async def test_tools_are_chosen_by_embeddings_of_a_llama_cpp_server(tmp_path: Path) -> None:
    specs = [tool.spec for tool in shop()]
    with embedding(packaged()) as url:
        embed = Embeddings(ModelConfig(model="any", base_url=url), tmp_path)
        choice = await ToolChooser(2, embed).choose("Where is my parcel?", specs)
        await embed.close()
    assert choice.note is None
    assert len(choice.names) == 2
    assert "track_parcel" in choice.names
