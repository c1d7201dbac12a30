"""Values in a config: addresses, variables, amounts, prices and prompts."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from hubbub.config.models import Price
from hubbub.config.paths import beside, shown_store, without_password
from hubbub.config.source import MissingVariable, expand, refers
from hubbub.config.units import ListenAddress, Size, Span, parse_address
from tests.unit.config.conftest import Loading


class TestStoreUrl:
    def test_a_database_is_shown_without_its_password(self) -> None:
        for url, name, public in (
            ("postgresql://db/news", "news on db", "postgresql://db/news"),
            (
                "postgresql://ann:s#?:x@a:1,[::1]:2/n",
                "n on a,[::1]",
                "postgresql://ann@a:1,[::1]:2/n",
            ),
            ("postgresql:///n?password=x&port=1", "n", "postgresql:///n?port=1"),
            ("postgresql://ann@db?password=x", "ann on db", "postgresql://ann@db"),
        ):
            assert shown_store(url) == f"the Postgres database {name}"
            assert without_password(url) == public

    def test_the_folder_of_a_store_depends_only_on_where_its_database_is(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        one, other = "postgresql://{}db-a:5433,db-b:5433/{}", "postgresql://{}db-a/{}"
        for url in (one, other):
            same = [
                url.format("", "news"),
                url.format("ann:s#x@", "news?sslmode=require&password=x"),
            ]
            assert len({beside(each) for each in same}) == 1
            assert beside(url.format("", "news?port=1")) != beside(same[0])
            assert beside(url.format("", "shop")) != beside(same[0])
        assert beside(one.format("", "news")) != beside(other.format("", "news"))


class TestAddress:
    def test_a_host_and_a_port_are_parsed_and_loopback_is_recognized(self) -> None:
        for text, host, port, loopback in (
            ("127.0.0.1:4820", "127.0.0.1", 4820, True),
            ("127.8.8.8:1", "127.8.8.8", 1, True),
            ("localhost:0", "localhost", 0, True),
            ("[::1]:4820", "::1", 4820, True),
            ("0.0.0.0:4820", "0.0.0.0", 4820, False),
            ("[::]:4820", "::", 4820, False),
            ("192.168.1.5:65535", "192.168.1.5", 65535, False),
            ("hub.example:80", "hub.example", 80, False),
            ("127.0.0.1.example:80", "127.0.0.1.example", 80, False),
        ):
            address = parse_address(text)
            assert (address, address.loopback) == (ListenAddress(host, port), loopback)
            assert str(address) == text

    def test_an_invalid_address_is_refused_with_an_example(self) -> None:
        ports = ("h:", "h:65536", "h:-1", "h:x", "h:٣")
        for text in ("", ":", "4820", "127.0.0.1", ":4820", "a b:1", *ports):
            with pytest.raises(ValueError, match=r"expected host:port, for example 127\.0\.0\.1:"):
                parse_address(text)
        for text in ("ws://127.0.0.1:4820", "http://localhost:4820"):
            with pytest.raises(ValueError, match="is not a valid address"):
                parse_address(text)
        with pytest.raises(ValueError, match="write an IPv6 host in brackets"):
            parse_address("::1:4820")

    @given(st.ip_addresses(), st.integers(0, 65535))
    def test_every_ip_address_round_trips_through_text(self, host: object, port: int) -> None:
        address = ListenAddress(str(host), port)
        assert parse_address(str(address)) == address


ENVIRON = {"NAME": "ann", "EMPTY": "", "WITH_REF": "${NAME}"}


class TestVariables:
    @pytest.mark.behaviour("L-2")
    def test_references_are_replaced_and_other_text_is_unchanged(self) -> None:
        for text, expected in {
            "plain": "plain",
            "hello ${NAME}${NAME}!": "hello annann!",
            "${MISSING:-bob}": "bob",
            "${MISSING:-}": "",
            "${EMPTY}": "",
            "${EMPTY:-bob}": "bob",
            "${MISSING:-http://h:1/v1}": "http://h:1/v1",
            "$NAME and $$": "$NAME and $$",
            "$${NAME}": "${NAME}",
            "$$${NAME}": "$${NAME}",
            "${MISSING:-${NAME}}": "ann",
            "${MISSING:-a ${GONE:-b${EMPTY:-c}}d} ${NAME}": "a bcd ann",
            "${NAME:-${GONE}}": "ann",
            "${MISSING:-$${NAME}}": "${NAME}",
            '${MISSING:-{"a": {}}}': '{"a": {}}',
            '{"key": "${NAME}"}': '{"key": "ann"}',
            "${WITH_REF}": "${NAME}",
        }.items():
            assert expand(text, ENVIRON) == expected, text

    @pytest.mark.behaviour("L-2")
    def test_an_invalid_or_missing_reference_is_refused_with_its_remedy(self) -> None:
        missing = r"variable GONE is not set.*\$\{GONE:-default\}"
        for text, message in {
            "a ${GONE} b": missing,
            "${MISSING:-${GONE}}": missing,
            **{bad: re.escape(bad) for bad in ("${}", "${1A}", "${A B}", "${A-b}", "${A:b}")},
            "a ${NAME": r"'\$\{NAME' has no closing brace",
            "${A:-${NAME}": "has no closing brace",
            "${A:-{}": "has no closing brace",
            "${": "has no closing brace",
            "${A:-" * 500 + "}" * 500: "too deep",
        }.items():
            with pytest.raises(MissingVariable, match=message):
                expand(text, ENVIRON)

    @given(st.text(alphabet="aN ${}:-", max_size=60))
    def test_any_text_is_expanded_or_refused(self, text: str) -> None:
        if not refers(text):
            assert expand(text, {}) == text
        with contextlib.suppress(MissingVariable):
            assert "${" not in expand(text, {"N": "ann"}) or "$${" in text

    @given(st.text(), st.text(alphabet=st.characters(exclude_characters="$")))
    def test_the_value_of_a_variable_is_inserted_unchanged(self, value: str, around: str) -> None:
        assert expand(f"{around}${{V}}{around}", {"V": value}) == f"{around}{value}{around}"


def test_sizes_and_durations_are_numbers_or_have_units() -> None:
    sizes = {"1": 1, 5: 5, "256KiB": 262144, "256kib": 262144, "1MB": 10**6, "32k": 32768}
    spans = {3: 3.0, "500ms": 0.5, "10s": 10.0, "1.5m": 90.0, "2h": 7200.0, "1d": 86400.0}
    for text, size in sizes.items():
        assert TypeAdapter(Size).validate_python(text) == size
    for text, span in spans.items():
        assert TypeAdapter(Span).validate_python(text) == pytest.approx(span)
    for wrong in ("", "x", "5 bananas", "-5", "1e3", 0, -1, "0", None, [1]):
        for amount in (Size, Span):
            with pytest.raises(ValidationError):
                TypeAdapter(amount).validate_python(wrong)


def test_a_price_is_in_dollars_per_million_input_and_output_tokens() -> None:
    price = Price(input=0.25, output=2.0)
    assert price.of(1_000_000, 1_000_000) == 2.25
    assert price.of(1000, 100) == pytest.approx(0.00045)
    assert Price(input=0, output=0).of(10**9, 10**9) == 0.0
    assert price.of(1000, 0, 900) == price.of(1000, 0)
    assert Price(input=1, output=0, cached_input=0.1).of(1000, 0, 900) == pytest.approx(0.00019)


def test_shares_versions_and_conditions_of_a_prompt_have_short_forms(loading: Loading) -> None:
    head = "models: {default: {model: m}}\nagents: {a: {prompt: {name: a, "
    for written, share in {"10%": 0.1, "0.1": 0.1, "2.5 %": 0.025}.items():
        text = f"{head}version: 2, rollout: {{version: '3', share: {written}}}}}}}}}"
        prompt = loading(text).file.agents["a"].prompt
        assert prompt is not None
        assert prompt.rollout is not None
        assert prompt.version == "2"
        assert prompt.rollout.share == pytest.approx(share)
    whens = "b: {text: x, when: has_skills}, c: {text: x, when: [not has_mods, read_only]}"
    prompt = loading(f"{head}components: {{add: {{{whens}}}}}}}}}}}").file.agents["a"].prompt
    assert prompt is not None
    conditions = [part.when for part in prompt.components.add.values()]
    assert conditions == [("has_skills",), ("not has_mods", "read_only")]
