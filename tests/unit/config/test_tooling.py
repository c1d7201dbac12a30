"""Tools, permissions and MCP servers in the YAML."""

from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from hubbub.agents.tools.assembly import servers_of, tool_policy_of
from hubbub.agents.tools.policy import ToolOverrides
from hubbub.config.agents import AgentConfig
from hubbub.config.loader import load
from hubbub.config.tooling import McpServerConfig
from hubbub.errors import ConfigError

FILE = """
network: {auth: open, store: "sqlite::memory:"}
models:
  default: {model: m}
mcp_servers:
  files:
    command: [files-server, --root, .]
    cwd: data
    env: {TOKEN: "${TOKEN:-none}"}
    timeout: 5s
  web: {url: "https://example.org/mcp", headers: {Authorization: Bearer x}, tools: [search]}
agents:
  clerk:
    mcp: [files, web]
    permission_mode: ask
    disabled_tools: [broadcast_text_message]
    select_over: 12
    result_budget: 2k
    sandbox: {memory: 256MiB, cpu: 2s}
    tool_settings:
      files_read: {permission: read, timeout: 90s, attempts: 5, result_budget: 8k}
      send_text_message: {confirm: true, backoff: 2s}
"""


def test_tool_settings_and_mcp_servers_load_with_their_values_converted(tmp_path: Path) -> None:
    (tmp_path / "net.yaml").write_text(FILE)
    file = load(tmp_path / "net.yaml", environ={"TOKEN": "t"}).file
    clerk = file.agents["clerk"]
    policy = tool_policy_of(clerk)
    assert (policy.mode, policy.select_over, policy.budget) == ("ask", 12, 2048)
    assert policy.disabled == {"broadcast_text_message"}
    assert policy.overrides == {
        "files_read": ToolOverrides("read", None, 90, None, 8192, attempts=5),
        "send_text_message": ToolOverrides(confirm=True, backoff=2),
    }
    assert (clerk.sandbox.memory, clerk.sandbox.cpu) == (256 * 1024**2, 2)
    servers = servers_of(clerk, "clerk", file.mcp_servers)
    assert servers["files"].env == {"TOKEN": "t"}
    assert servers["files"].cwd == str(tmp_path / "data")
    assert servers["files"].timeout == 5
    assert servers["web"].tools == ["search"]


def test_an_mcp_server_needs_either_a_command_or_a_url() -> None:
    servers: list[dict[str, object]] = [
        {},
        {"command": ["x"], "url": "http://x"},
        {"command": []},
        {"url": "ftp://x"},
        {"command": ["x"], "timeout": 0},
        {"command": ["x"], "commands": 1},
    ]
    for server in servers:
        with pytest.raises(ValidationError):
            McpServerConfig.model_validate(server)


def test_an_agent_that_names_an_unknown_mcp_server_is_refused() -> None:
    with pytest.raises(ConfigError, match="no MCP server 'fles'; did you mean 'files'"):
        servers_of(AgentConfig(mcp=["fles"]), "bot", {"files": McpServerConfig(command=["x"])})
