"""opencode over ACP, in the coding-team config, with a scripted model."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from hubbub.protocol.control import Approval, Approvals
from hubbub.protocol.turns import Turn
from hubbub.testing.model_server import ModelServer, load_script
from tests.e2e.support.config_network import ROOT, run_here
from tests.e2e.support.opencode import MISSING, find
from tests.unit.configs.people import Person

pytest.importorskip("acp", reason="needs the extra `acp`")
OPENCODE = find()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.npm,
    pytest.mark.skipif(OPENCODE is None, reason=MISSING),
]


async def pending_approval(person: Person) -> Approval:
    """The next approval that the person can decide."""
    async with asyncio.timeout(60):
        while True:
            answer = await person.client.call("list_approvals")
            if pending := Approvals.model_validate(answer).approvals:
                return pending[0]


@pytest.mark.behaviour("I-8")
async def test_opencode_writes_an_approved_file_and_resumes_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace, home = tmp_path / "workspace", tmp_path / "home"
    shutil.copytree(ROOT / "configs" / "coding-workspace", workspace)
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))  # where opencode keeps its sessions
    script = load_script(Path(__file__).parent / "scripts" / "coding-team.yaml")
    async with ModelServer(script) as model:
        variables = {
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "scripted",
            "OPENAI_MODEL": "scripted",
            "OPENCODE": str(OPENCODE),
            "WORKSPACE": str(workspace),
        }
        config = ROOT / "configs" / "coding-team.yaml"
        async with run_here(config, tmp_path, variables) as network:
            me = await network.join("me")
            await me.tells("lead", "please write hello.py, which prints hello")
            approval = await pending_approval(me)
            assert (approval.agent, approval.tool) == ("coder", "write")
            assert "+print('hello')" in str(approval.arguments["diff"])
            assert not (workspace / "hello.py").exists()
            await me.client.call("approve", id=approval.id)
            written = await me.hears("coder")
            assert written.text == "@reviewer hello.py prints hello."
            (file,) = written.attachments
            excerpt = "print('hello')"
            assert (file.name, file.uri, file.excerpt) == ("hello.py", "file:f1", excerpt)
            reply = await me.hears("lead", lambda m: m.type == "direct")
            assert reply.text == "hello.py is written and reviewed."
            assert (workspace / "hello.py").read_text() == "print('hello')\n"
            turn = Turn.model_validate(await me.client.call("read_turn", id=written.cause_id))
        assert model.mistakes == []
        calls = [call.name for step in turn.steps for call in step.calls]
        assert calls == ["read_thread", "write", "answer"]
        assert turn.tokens_in > 0
        async with run_here(config, tmp_path, variables) as network:
            me = await network.join("me")
            await me.posts("dev", "@coder make it loud")
            reply = await me.hears("coder", lambda m: "remember" in m.text)
            assert reply.text == "I remember hello.py."
        assert "I write it." in str(model.requests[-1].messages), "the session was not resumed"
        assert model.mistakes == []
