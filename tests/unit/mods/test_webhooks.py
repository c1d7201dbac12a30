"""Settings of webhooks, templates of messages, and signatures."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue

from hubbub.errors import UserError
from hubbub.mods.loader import settings_of
from hubbub.mods.webhooks.mod import WebhooksMod
from hubbub.mods.webhooks.settings import (
    MAX_CHARACTERS,
    BadSignature,
    CannotRender,
    WebhooksConfig,
    render,
    sign,
    verify,
)

SECRET = "correct horse battery"
HOOK: dict[str, JsonValue] = {"name": "audit", "url": "https://example.org/x", "secret": SECRET}
ENDPOINT: dict[str, JsonValue] = {"name": "ci", "to": "channel_desk", "secret": SECRET}


@pytest.mark.behaviour("M-256")
def test_invalid_settings_are_reported_with_their_position() -> None:
    wrong: list[tuple[dict[str, JsonValue], str]] = [
        ({"hooks": [{**HOOK, "url": "ftp://x"}]}, "mods.webhooks.hooks.0.url: expected an address"),
        ({"hooks": [{**HOOK, "url": "https://"}]}, "hooks.0.url: expected an address"),
        ({"hooks": [{**HOOK, "url": "https://x:99999"}]}, "hooks.0.url: expected an address"),
        ({"hooks": [{**HOOK, "url": "https://x/\n"}]}, "hooks.0.url: expected an address"),
        ({"hooks": [{**HOOK, "secret": "short"}]}, "hooks.0.secret: must have at least 16"),
        ({"hooks": [{**HOOK, "events": ["massage"]}]}, "hooks.0.events.0: "),
        ({"hooks": [{**HOOK, "threads": ["desk"]}]}, "hooks.0.threads.0: 'desk' is not a thread"),
        ({"hooks": [HOOK, HOOK]}, "mods.webhooks: 'audit' is listed twice"),
        (
            {"inbound": {"endpoints": [ENDPOINT, ENDPOINT]}},
            "inbound.endpoints: 'ci' is listed twice",
        ),
        ({"inbound": {"listen": "here"}}, "inbound.listen: 'here' is not a valid address"),
        (
            {"inbound": {"endpoints": [{**ENDPOINT, "template": "a\n{{ body."}]}},
            "inbound.endpoints.0.template: the template does not parse: line 2",
        ),
    ]
    for settings, message in wrong:
        with pytest.raises(UserError) as caught:
            settings_of(WebhooksMod, settings)
        assert message in str(caught.value)
        assert SECRET not in str(caught.value)


@pytest.mark.behaviour("M-256")
def test_secrets_are_hidden_in_the_settings() -> None:
    config = WebhooksConfig.model_validate({"hooks": [HOOK], "inbound": {"endpoints": [ENDPOINT]}})
    assert SECRET not in f"{config!r} {config.model_dump_json()}"


@pytest.mark.behaviour("M-256")
def test_a_template_cannot_escape_its_sandbox() -> None:
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
            render(template, {"body": []})


@pytest.mark.behaviour("M-256")
def test_a_long_rendered_text_is_truncated() -> None:
    context: dict[str, Any] = {"body": {"text": "x" * 10**6}}
    assert len(render(None, context)) == MAX_CHARACTERS


@pytest.mark.behaviour("M-250")
def test_a_signature_matches_the_example_of_the_specification() -> None:
    headers = sign(
        "whsec_plJ3nmyCDGBKInavdOK15jsl",
        "msg_loFOjxBNrRLzqYUf",
        1731705121.9,
        b'{"event_type":"ping","data":{"success":true}}',
    )
    assert headers == {
        "webhook-id": "msg_loFOjxBNrRLzqYUf",
        "webhook-timestamp": "1731705121",
        "webhook-signature": "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
    }


@pytest.mark.behaviour("M-258")
@given(st.text(min_size=1), st.binary(), st.integers(0, 2**40))
def test_a_signature_is_valid_only_for_its_secret_body_and_time(
    secret: str, body: bytes, now: int
) -> None:
    try:
        secret.encode()
    except UnicodeEncodeError:
        return
    headers = sign(secret, "e1", now, body)
    assert verify(secret, headers, body, now + 5, 5) == "e1"
    with pytest.raises(BadSignature, match="signature"):
        verify(secret + "x", headers, body, now, 5)
    with pytest.raises(BadSignature, match="signature"):
        verify(secret, headers, body + b" ", now, 5)
    with pytest.raises(BadSignature, match="off the current time"):
        verify(secret, headers, body, now + 6, 5)


@pytest.mark.behaviour("M-258")
def test_an_id_with_a_full_stop_is_refused_as_ambiguous() -> None:
    with pytest.raises(BadSignature, match="webhook-id"):
        verify(SECRET, sign(SECRET, "a.1", 5, b"x"), b"x", 5, 60)
