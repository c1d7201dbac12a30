"""Text extracted from files, including malicious ones."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import zipfile
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hubbub.mods.files.media_types import OCTETS
from hubbub.mods.files.reader import (
    LONGEST_LINE,
    FileRefused,
    NoText,
    ReadLimits,
    extract_text,
    text_of_html,
)

LIMITS = ReadLimits(characters=10_000, unpacked=1_000_000, ratio=50, small=100_000, entries=20)
OFFICE = "application/vnd.openxmlformats-officedocument"
DOCX, XLSX = f"{OFFICE}.wordprocessingml.document", f"{OFFICE}.spreadsheetml.sheet"
PPTX = f"{OFFICE}.presentationml.presentation"
ODT = "application/vnd.oasis.opendocument.text"
W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def read(folder: Path, data: bytes, media_type: str, limits: ReadLimits = LIMITS) -> str:
    path = folder / "it"
    path.write_bytes(data)
    return extract_text(path, media_type, limits).text


def zipped(**files: str | bytes) -> bytes:
    """An archive; `__` in a name stands for `/`."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(f"{name.replace('__', '/')}.xml", text)
    return data.getvalue()


@pytest.mark.behaviour("M-121")
def test_text_is_extracted_from_each_type_of_file(tmp_path: Path) -> None:
    for data, media_type, text in (
        (b"one\r\ntwo\rthree\n\n", "text/plain", "one\ntwo\nthree"),
        (b"\xef\xbb\xbfone", "text/markdown", "one"),
        ("größer".encode("utf-16"), "text/plain", "größer"),
        ("größer".encode("cp1252"), "text/csv", "größer"),
        (b'{"a": 1}', "application/json", '{"a": 1}'),
        (b"a\x1b[2Jb\x00c", "text/plain", "a[2Jbc"),
        (b"<p>a&amp;b<script>x()</script><li>c", "text/html", "a&b\n- c"),
        (
            zipped(
                word__document=f"<w:d {W}><w:p><w:t>one</w:t><w:tab/><w:t>two</w:t></w:p>"
                "<w:p><w:t>three</w:t></w:p><w:x>no</w:x></w:d>"
            ),
            DOCX,
            "one\ttwo\nthree",
        ),
        (
            zipped(
                xl__sharedStrings="<s xmlns='x'><si><t>name\nx</t></si><si><t>sum</t></si></s>",
                xl__worksheets__sheet1="<w xmlns='x'><row><c t='s'><v>0</v></c><c t='s'><v>1</v>"
                "</c></row><row><c><v>7</v></c><c t='inlineStr'><is><t>in</t></is></c></row></w>",
                xl__worksheets__sheet2="<w xmlns='x'><row><c t='s'><v>99</v></c></row></w>",
            ),
            XLSX,
            "name x\tsum\t\n7\tin\t\n\n99",
        ),
        (
            zipped(
                ppt__slides__slide10="<s xmlns:a='x'><a:p><a:t>last</a:t></a:p></s>",
                ppt__slides__slide2="<s xmlns:a='x'><a:p><a:t>first</a:t></a:p></s>",
            ),
            PPTX,
            "first\n\nlast",
        ),
        (
            zipped(content="<d xmlns:t='x'><t:h>Plan</t:h><t:p>one <t:s>two</t:s></t:p></d>"),
            ODT,
            "Plan\none two",
        ),
    ):
        assert read(tmp_path, data, media_type) == text


@pytest.mark.behaviour("M-121")
def test_a_file_without_text_is_refused_with_a_reason(tmp_path: Path) -> None:
    for data, media_type in (
        (b"\x89PNG", "image/png"),
        (b"\x00\x01", OCTETS),
        (b" \n \n", "text/plain"),
        (b"<script>only()</script>", "text/html"),
        (b"PK\x03\x04 no archive", DOCX),
        (zipped(other="<x/>"), DOCX),
        (zipped(word__document="<w"), DOCX),
        (zipped(word__document=b"\xff\xfe\x00"), DOCX),
        (b"%PDF-1.4", "application/pdf"),
        (b"%PDF-1.4\n1 0 obj <</Length 99999>> stream\n" + bytes(5000), "application/pdf"),
    ):
        with pytest.raises(NoText) as caught:
            read(tmp_path, data, media_type)
        assert str(caught.value)


def pdf(*lines: str) -> bytes:
    """A document of one page with these lines."""
    drawn = "".join(f"({line}) Tj 0 -14 Td " for line in lines)
    content = f"BT /F1 12 Tf 72 720 Td {drawn}ET".encode()
    objects = [
        b"<</Type /Catalog /Pages 2 0 R>>",
        b"<</Type /Pages /Kids [3 0 R] /Count 1>>",
        b"<</Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources <</Font <</F1 <</Type /Font /Subtype /Type1 /BaseFont /Helvetica>>>>>>>>",
        b"<</Length %d>> stream\n%s\nendstream" % (len(content), content),
    ]
    data, offsets = b"%PDF-1.4\n", []
    for number, each in enumerate(objects, 1):
        offsets.append(len(data))
        data += b"%d 0 obj %s endobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    head = b"xref\n0 5\n0000000000 65535 f \n" + table
    end = b"trailer <</Size 5 /Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % len(data)
    return data + head + end


@pytest.mark.slow
@pytest.mark.behaviour("M-121")
def test_the_text_of_a_pdf_is_extracted_in_another_process(tmp_path: Path) -> None:
    assert read(tmp_path, pdf("Annual report", "up by a third"), "application/pdf") == (
        "Annual report\nup by a third"
    )
    path = tmp_path / "it"
    path.write_bytes(pdf("x" * 50_000))
    assert extract_text(path, "application/pdf", LIMITS).cut


@pytest.mark.slow
@pytest.mark.behaviour("M-118")
def test_a_pdf_is_abandoned_when_its_process_hangs_or_crashes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = tmp_path / "worker.py"
    monkeypatch.setattr("hubbub.mods.files.reader._WORKER", worker)
    for code, wait, reason in (
        ("import time; time.sleep(60)", 0.1, "too long"),
        ("x = bytearray(10**15)", 30, "could not be read"),
        ("raise SystemExit(3)", 30, "encrypted"),
    ):
        worker.write_text(code)
        monkeypatch.setattr("hubbub.mods.files.reader.WAIT_S", wait)
        with pytest.raises(NoText, match=reason):
            read(tmp_path, pdf("x"), "application/pdf")


@pytest.mark.behaviour("M-121")
def test_a_pdf_names_the_missing_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hubbub.mods.files.reader.find_spec", lambda name: None)
    with pytest.raises(NoText, match=r"hubbub\[pdf\]"):
        read(tmp_path, pdf("x"), "application/pdf")


@pytest.mark.behaviour("M-121")
def test_long_texts_are_truncated_and_long_lines_wrapped(tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_bytes("ü".encode() * 30_000)
    reading = extract_text(path, "text/plain", LIMITS)
    assert reading.cut
    lines = reading.text.split("\n")
    assert reading.lines == len(lines) == 5
    assert max(map(len, lines)) == LONGEST_LINE
    assert sum(map(len, lines)) == LIMITS.characters
    path.write_bytes(zipped(word__document=f"<w:d {W}><w:t>{'x' * 30_000}</w:t></w:d>"))
    assert extract_text(path, DOCX, LIMITS).cut


ENTITIES = (
    '<!DOCTYPE d [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>'
    f"<w:d {W}><w:t>&b;</w:t></w:d>"
)
OUTSIDE = f'<!DOCTYPE d [<!ENTITY a SYSTEM "file:///etc/passwd">]><w:d {W}><w:t>&a;</w:t></w:d>'
ZEROS = b"0" * 5_000_000


@pytest.mark.behaviour("M-118")
def test_decompression_and_entity_bombs_are_refused(tmp_path: Path) -> None:
    for data, media_type in (
        (gzip.compress(ZEROS), "application/gzip"),
        (gzip.compress(b"x") + gzip.compress(ZEROS), "application/gzip"),
        (bz2.compress(ZEROS), "application/x-bzip2"),
        (lzma.compress(ZEROS), "application/x-xz"),
        (zipped(a=ZEROS), "application/zip"),
        (zipped(a=ZEROS[:200_000]), "application/zip"),
        (zipped(word__document=ZEROS), DOCX),
        (zipped(**{f"a{n}": "x" for n in range(21)}), "application/zip"),
        (zipped(**{f"a{n}": "x" for n in range(21)}), "application/epub+zip"),
        (zipped(word__document=ENTITIES), DOCX),
        (zipped(word__document=OUTSIDE), DOCX),
        (zipped(content=ENTITIES), ODT),
        (zipped(xl__sharedStrings=ENTITIES), XLSX),
    ):
        with pytest.raises(FileRefused) as caught:
            read(tmp_path, data, media_type)
        assert str(caught.value)


@pytest.mark.behaviour("M-118")
def test_an_archive_with_false_sizes_is_refused(tmp_path: Path) -> None:
    data = bytearray(zipped(word__document=f"<w:d {W}><w:t>{'x' * 900_000}</w:t></w:d>"))
    real = (900_000 + len(f"<w:d {W}><w:t></w:t></w:d>")).to_bytes(4, "little")
    assert data.count(real) == 2, "in the local header and in the directory"
    lying = bytes(data.replace(real, (10).to_bytes(4, "little")))
    with pytest.raises((NoText, FileRefused)):
        read(tmp_path, lying, DOCX)


@pytest.mark.behaviour("M-118")
def test_all_files_of_a_document_together_are_parsed_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A megabyte of zipped slides can unpack to 200 MB of empty elements, half a minute of work.
    monkeypatch.setattr("hubbub.mods.files.reader.MAX_XML", 1_000)
    slides = {f"ppt__slides__slide{n}": f"<a><t>{n}</t>{'<t/>' * 100}</a>" for n in range(1, 10)}
    assert read(tmp_path, zipped(**slides), PPTX).split() == ["1", "2", "3"]


def test_an_archive_with_an_oversized_directory_is_refused_unread(tmp_path: Path) -> None:
    end = b"PK\x05\x06" + bytes(4) + (3).to_bytes(2, "little") * 2
    end += (3_000_000).to_bytes(4, "little") + bytes(6)
    with pytest.raises(FileRefused, match="its directory"):
        read(tmp_path, b"PK\x03\x04" + b"x" * 3_000_000 + end, "application/zip")


def test_html_is_extracted_as_displayed() -> None:
    for source, text in (
        ("a < b and c > d", "a < b and c > d"),
        ("<!-- no --><b>yes</b>", "yes"),
        ("<!-- never closed", ""),
        ("x<script>never closed", "x"),
        ("x<style>a</STYLE >y", "xy"),
        ("<table><tr><td>a</td><td>b</td></tr></table>", "a\tb"),
        ("one<br>two\n three", "one\ntwo three"),
        ("<title>T</title><?php x ?>y", "T\ny"),
        ("x<a href", "x"),
        ("&lt;b&gt;", "<b>"),
    ):
        assert text_of_html(source) == text
    for piece in ("<", "<!--", "<a ", "<script>", "&", "<!", "</", " \t", "<li><"):
        text_of_html(piece * 30_000)  # quadratic time would be hours


@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_corrupted_document_is_extracted_or_refused(tmp_path: Path, data: st.DataObject) -> None:
    text = f"<w:d {W}><w:p><w:t>hello</w:t></w:p></w:d>"
    whole = bytearray(zipped(word__document=text, word__styles="<x/>"))
    for _ in range(data.draw(st.integers(1, 5))):
        whole[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    upto = data.draw(st.integers(1, len(whole)))
    with suppress(NoText, FileRefused):
        read(tmp_path, bytes(whole[:upto]), DOCX)
