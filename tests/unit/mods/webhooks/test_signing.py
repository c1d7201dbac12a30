from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.mods.webhooks.settings import Forged, signed, verify

SECRET = "correct horse battery"


@pytest.mark.behaviour("M-250")
def test_signatures_are_those_of_the_specification() -> None:
    made = signed(
        "whsec_plJ3nmyCDGBKInavdOK15jsl",
        "msg_loFOjxBNrRLzqYUf",
        1731705121.9,
        b'{"event_type":"ping","data":{"success":true}}',
    )
    assert made == {
        "webhook-id": "msg_loFOjxBNrRLzqYUf",
        "webhook-timestamp": "1731705121",
        "webhook-signature": "v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=",
    }


@pytest.mark.behaviour("M-258")
@given(st.text(min_size=1), st.binary(), st.integers(0, 2**40))
def test_what_is_signed_is_verified(secret: str, body: bytes, now: int) -> None:
    try:
        secret.encode()
    except UnicodeEncodeError:
        return
    headers = signed(secret, "e1", now, body)
    assert verify(secret, headers, body, now + 5, 5) == "e1"
    with pytest.raises(Forged, match="signature"):
        verify(secret + "x", headers, body, now, 5)
    with pytest.raises(Forged, match="signature"):
        verify(secret, headers, body + b" ", now, 5)
    with pytest.raises(Forged, match="away from now"):
        verify(secret, headers, body, now + 6, 5)


@pytest.mark.behaviour("M-258")
def test_an_id_has_no_full_stop_lest_a_part_is_moved_into_another() -> None:
    with pytest.raises(Forged, match="webhook-id"):
        verify(SECRET, signed(SECRET, "a.1", 5, b"x"), b"x", 5, 60)
