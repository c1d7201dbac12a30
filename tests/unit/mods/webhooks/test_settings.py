from __future__ import annotations

from typing import Any

import pytest
from pydantic import JsonValue

from hubbub.errors import UserError
from hubbub.mods.loader import settings_of
from hubbub.mods.webhooks.mod import WebhooksMod
from hubbub.mods.webhooks.settings import MOST_CHARACTERS, CannotRender, WebhooksConfig, rendered

pytestmark = pytest.mark.behaviour("M-256")
HOOK: dict[str, JsonValue] = {
    "name": "audit",
    "url": "https://example.org/x",
    "secret": "correct horse battery",
}
DOOR: dict[str, JsonValue] = {"name": "ci", "to": "channel_desk", "secret": "correct horse battery"}


def test_wrong_settings_are_told_with_their_place() -> None:
    wrong: list[tuple[dict[str, JsonValue], str]] = [
        ({"hooks": [{**HOOK, "url": "ftp://x"}]}, "mods.webhooks.hooks.0.url: expected an address"),
        ({"hooks": [{**HOOK, "url": "https://"}]}, "hooks.0.url: expected an address"),
        ({"hooks": [{**HOOK, "url": "https://x:99999"}]}, "hooks.0.url: expected an address"),
        ({"hooks": [{**HOOK, "url": "https://x/\n"}]}, "hooks.0.url: expected an address"),
        ({"hooks": [{**HOOK, "secret": "short"}]}, "hooks.0.secret: "),
        ({"hooks": [{**HOOK, "events": ["massage"]}]}, "hooks.0.events.0: "),
        ({"hooks": [{**HOOK, "threads": ["desk"]}]}, "hooks.0.threads.0: 'desk' is no thread"),
        ({"hooks": [HOOK, HOOK]}, "mods.webhooks: 'audit' is there twice"),
        ({"inbound": {"endpoints": [DOOR, DOOR]}}, "inbound.endpoints: 'ci' is there twice"),
        ({"inbound": {"listen": "here"}}, "inbound.listen: 'here' is no address"),
        (
            {"inbound": {"endpoints": [{**DOOR, "template": "a\n{{ body."}]}},
            "inbound.endpoints.0.template: the template does not parse: line 2",
        ),
    ]
    for settings, told in wrong:
        with pytest.raises(UserError) as caught:
            settings_of(WebhooksMod, settings)
        assert told in str(caught.value)
        assert "correct horse" not in str(caught.value)


def test_secrets_are_not_shown_with_the_settings() -> None:
    config = WebhooksConfig.model_validate({"hooks": [HOOK], "inbound": {"endpoints": [DOOR]}})
    assert "correct horse" not in f"{config!r} {config.model_dump_json()}"


def test_a_template_cannot_leave_its_sandbox() -> None:
    for template in (
        "{{ ''.__class__.__mro__ }}",
        "{{ body.append(1) }}",
        "{{ range(10**9) | list }}",
        "{{ body.x.y.z }}",
        "{{ body | json(1) }}",
        "{{ 1 / 0 }}",
        "{% include 'x' %}",
    ):
        with pytest.raises(CannotRender):
            rendered(template, {"body": []})


def test_a_long_text_is_cut() -> None:
    given: dict[str, Any] = {"body": {"text": "x" * 10**6}}
    assert len(rendered(None, given)) == MOST_CHARACTERS
