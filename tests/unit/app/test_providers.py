"""Available models are discovered from the environment and from local servers."""

from __future__ import annotations

import asyncio

import pytest
import yaml

from hubbub.app.providers import (
    ModelProposal,
    find_models,
    from_environment,
    models_section,
    on_server,
)
from hubbub.config.models import NetworkFile
from hubbub.testing.model_script import Script
from hubbub.testing.model_server import ModelServer
from tests.unit.agents.raw_endpoint import Reply, endpoint


def test_api_keys_in_the_environment_are_proposed_by_name_without_their_value() -> None:
    environ = {"OPENAI_API_KEY": "sk-secret", "MISTRAL_API_KEY": "m", "OTHER": "x"}
    proposals = from_environment(environ)
    assert [p.key for p in proposals] == ["OPENAI_API_KEY", "MISTRAL_API_KEY"]
    assert proposals[0].base_url == "https://api.openai.com/v1"
    assert '"gpt-5-mini"' in models_section(proposals)
    assert "sk-secret" not in models_section(proposals)
    assert from_environment({"OPENAI_API_KEY": ""}) == []
    custom = {"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://h/v1"}
    assert from_environment(custom) == [], "the key belongs to a custom server"


async def test_a_model_server_is_proposed_with_its_first_chat_model(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")  # must be ignored
    async with ModelServer(Script(models=["nomic-embed", "qwen3:8b", "other"])) as server:
        url = server.base_url
        proposal = await asyncio.to_thread(on_server, "Ollama", url)
    assert proposal == ModelProposal("qwen3:8b", url, None, f"Ollama answers at {url}")


async def test_a_server_without_a_usable_model_list_is_ignored() -> None:
    for body, status in (
        (b"<html>hello</html>", 200),
        (b"", 200),
        (b"[]", 200),
        (b"{}", 200),
        (b'{"data": 5}', 200),
        (b'{"data": []}', 200),
        (b'{"data": [5, {}, {"id": 7}]}', 200),
        (b'{"data": [{"id": "text-embedding-3"}]}', 200),
        (b"\xff\xfe", 200),
        (b'{"data": [{"id": "m"}]}', 401),
    ):
        async with endpoint(Reply(body, status)) as url:
            assert await asyncio.to_thread(on_server, "vLLM", url) is None, body
    assert await asyncio.to_thread(on_server, "vLLM", url) is None, "no server listens"


async def test_models_are_proposed_from_keys_servers_and_the_base_url() -> None:
    async with endpoint(Reply(b'{"data": [{"id": "local"}]}')) as url:
        proposals = await find_models(
            {"OPENAI_BASE_URL": url, "MISTRAL_API_KEY": "m"},
            [("Ollama", "http://127.0.0.1:9/v1"), ("vLLM", url)],
        )
    assert [(p.model, p.base_url) for p in proposals] == [
        ("mistral-small-latest", "https://api.mistral.ai/v1"),
        ("local", url),
        ("local", "${OPENAI_BASE_URL}"),
    ]


def test_proposals_render_as_a_valid_models_section() -> None:
    proposals = [
        ModelProposal("a:b", "http://127.0.0.1:1/v1", None, "found"),
        ModelProposal('odd "name"', "https://models.example/v1", "OPENAI_API_KEY", "set"),
    ]
    models = NetworkFile.model_validate(yaml.safe_load(models_section(proposals))).models
    assert list(models) == ["default", "other1"]
    assert models["default"].model == "a:b"
    assert models["other1"].model == 'odd "name"'
    assert models["other1"].api_key == "${OPENAI_API_KEY}"
