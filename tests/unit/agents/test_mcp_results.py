"""Names, specs and results of MCP tools, without a server."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp.types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    TextContent,
    Tool,
)

from hubbub.agents.tools.mcp.servers import McpServers, spec_of, text_of, tool_name
from hubbub.config.tooling import McpServerConfig
from hubbub.errors import ConfigError

pytestmark = pytest.mark.slow  # importing the SDK takes a tenth of the time of collecting all tests


@given(st.text(min_size=1, max_size=20), st.text(max_size=200))
def test_a_tool_name_is_valid_for_every_endpoint(server: str, tool: str) -> None:
    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", tool_name(server, tool))


def test_long_names_stay_distinct_and_valid_ones_unchanged() -> None:
    names = {tool_name("files", "x" * 100 + str(n)) for n in range(10)}
    assert len(names) == 10
    assert all(name.startswith("files_xxx") for name in names)
    assert tool_name("git-hub", "list_issues") == "git-hub_list_issues"
    assert tool_name("files", "read/all.txt") == "files_read_all_txt"


def test_a_spec_is_an_object_schema_without_titles() -> None:
    spec = spec_of("files", Tool(name="list", input_schema={}))
    assert spec.parameters == {"type": "object", "properties": {}}
    assert spec.description == "list"
    schema = {"title": "T", "type": "object", "properties": {"a": {"title": "A"}}}
    spec = spec_of("files", Tool(name="x", description="Do x.", input_schema=schema))
    assert spec.parameters == {"type": "object", "properties": {"a": {}}}
    assert spec.description == "Do x."


def test_a_result_becomes_text_json_or_the_type_of_its_content() -> None:
    parts = [TextContent(text="a"), TextContent(text="b")]
    assert text_of(CallToolResult(content=[*parts])) == "a\nb"
    assert text_of(CallToolResult(content=[], structured_content={"a": "ä"})) == '{"a": "ä"}'
    assert text_of(CallToolResult(content=[])) == "done"
    sound = AudioContent(data="AAAA", mime_type="audio/wav")
    blob = BlobResourceContents(uri="file:///x", blob="AAAA")
    assert text_of(CallToolResult(content=[sound, EmbeddedResource(resource=blob)])) == (
        "[audio, audio/wav, 3 bytes: cannot be shown here]\n"
        "[resource file:///x: cannot be shown here]"
    )


def test_without_the_mcp_package_the_error_names_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'hubbub\[mcp\]'"):
        McpServers({"x": McpServerConfig(command=["x"])}, tmp_path)
    assert McpServers({}, tmp_path).tools() == ()
