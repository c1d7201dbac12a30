from __future__ import annotations

import pytest
from hypothesis import given
from pydantic import ValidationError

from hubbub.mods.moderation.folding import caseless, plain
from hubbub.mods.moderation.links import host_of, links
from hubbub.mods.moderation.settings import LinksConfig
from tests.unit.protocol.drafts import hostile_text

pytestmark = pytest.mark.behaviour("M-241")


def hosts(text: str) -> list[str]:
    return [host for _, host in links(caseless(plain(text)))]


@pytest.mark.parametrize(
    "text",
    [
        "https://evil.com",
        "see HTTPS://EVIL.COM/path?x#y.",
        "http://user:pass@evil.com:8080/",
        "https://good.org@evil.com/",
        "https:\\\\evil.com\\x",
        "https:evil.com",
        "https:///evil.com",
        "ftp://evil.com",
        "https://evil%2ecom/",
        "https://evil。com/",
        "https://ｅｖｉｌ．ｃｏｍ/",
        "https://ev\u200bil.com",
        "https://evil.com./",
        "[a](//evil.com/x)",
        "<a href='//evil.com'>",
        "www.evil.com",
        "go to evil.com now",
        "evil.com/path",
        "evil.com:443",
        "(evil.com)",
    ],
)
def test_a_link_is_found_whatever_it_is_disguised_as(text: str) -> None:
    assert [host.removeprefix("www.") for host in hosts(text)] == ["evil.com"]


@pytest.mark.parametrize(
    "text",
    ["main.py and a.b", "ann@evil.com", "e.g. this", "1.5 or 2.0", "// a comment", "a//b", "12:30"],
)
def test_what_is_no_link_is_none(text: str) -> None:
    assert hosts(text) == []


def test_a_letter_of_another_script_is_another_host() -> None:
    assert hosts("https://gооgle.com") == ["xn--ggle-55da.com"]
    assert hosts("https://bücher.example") == ["xn--bcher-kva.example"]


@pytest.mark.parametrize(
    "link", ["http://2130706433/", "http://0x7f.1", "http://127.1:80", "//127.0.0.1"]
)
def test_an_address_is_known_in_all_its_forms(link: str) -> None:
    assert host_of(link) == "127.0.0.1"


@pytest.mark.parametrize(
    "link", ["https://evil.org%2f.good.com", "https://[::zz]", "https://" + "a" * 70 + ".com"]
)
def test_a_host_that_cannot_be_read_is_none(link: str) -> None:
    assert host_of(link) == ""


def test_addresses_of_the_new_kind_are_read() -> None:
    assert host_of("http://[0:0::1]:80/x") == "::1"


@pytest.mark.parametrize("wrong", ["", "a b.com", "http://x.org", "a/b"])
def test_what_is_no_domain_is_refused_in_the_settings(wrong: str) -> None:
    with pytest.raises(ValidationError, match="expected a domain"):
        LinksConfig(deny=(wrong,))


@given(hostile_text())
def test_any_text_can_be_looked_through(text: str) -> None:
    for (start, end), _ in links(caseless(plain(text))):
        assert 0 <= start < end <= len(text)
