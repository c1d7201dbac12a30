"""Wrong frames: those that the protocol's page lists, generated ones, mutations of good ones."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from typing import NamedTuple

from pydantic import JsonValue

__all__ = ["LISTED", "Broken", "corpus"]

FRAME_BYTES = 256 * 1024


class Broken(NamedTuple):
    """One frame as its sender writes it."""

    data: bytes
    surely: bool
    """Whether it is wrong for certain; a mutation may have left a good frame."""


def _call(args: str, name: str = "send_text_message") -> bytes:
    return f'{{"op":"call","ref":"r","name":"{name}","args":{args}}}'.encode()


LISTED: Sequence[bytes] = (
    # Not JSON, or not a frame.
    b"",
    b" ",
    b"hello",
    b"{",
    b"{}",
    b"[]",
    b"null",
    b"1",
    b'"op"',
    b'{"op"}',
    b'{"op":null}',
    b'{"op":"shout"}',
    b'{"op":"CALL"}',
    b'{"op":["call"]}',
    b'{"op":{"op":"call"}}',
    b"{'op':'call'}",
    b'{"op":"ack","seq":1,}',
    b'{"op":"ack","seq":1}{"op":"ack","seq":1}',
    b'\xef\xbb\xbf{"op":"ack","seq":0}',
    b'{"op":"ack",/* no */"seq":0}',
    b'{"op":"signal","type":"typing","data":0x10}',
    # Not UTF-8, half characters, NUL.
    b"\xff\xfe",
    b'{"op":"signal","type":"typing","data":"\xc3"}',
    b'{"op":"signal","type":"typing","data":"\xed\xa0\x80"}',
    _call('{"to":"ann","text":"\\ud800"}'),
    _call('{"to":"ann","text":"\\udfff tail"}'),
    _call('{"to":"ann","text":"a\\u0000b"}'),
    _call('{"to":"ann","text":"a\0b"}'),
    _call('{"to":"ann","content":{"\\u0000":1}}', "send_message"),
    _call('{"to":"ann","content":["\\ud83d"]}', "send_message"),
    # Numbers that are none, or too large.
    _call('{"to":"ann","content":NaN}', "send_message"),
    _call('{"to":"ann","content":-Infinity}', "send_message"),
    _call('{"to":"ann","content":1e999}', "send_message"),
    _call('{"to":"ann","content":[-1e999]}', "send_message"),
    _call('{"to":"ann","content":' + "9" * 5000 + "}", "send_message"),
    _call('{"limit":1e999}', "list_threads"),
    b'{"op":"ack","seq":99999999999999999999999999}',
    b'{"op":"ack","seq":-1}',
    b'{"op":"ack","seq":1.5}',
    b'{"op":"ack","seq":"1"}',
    b'{"op":"ack","seq":true}',
    b'{"op":"ack","seq":4611686018427387904}',
    b'{"op":"ack"}',
    # Keys given twice.
    b'{"op":"ack","op":"ack","seq":0}',
    b'{"op":"ack","seq":0,"seq":0}',
    _call('{"to":"ann","to":"bob","text":"x"}'),
    _call('{"to":"ann","content":{"a":{"b":1,"b":2}}}', "send_message"),
    # Depth bombs.
    b"[" * 100_000,
    b'{"op":' * 20_000,
    _call('{"to":"ann","content":' + "[" * 200 + "]" * 200 + "}", "send_message"),
    _call('{"to":"ann","content":' + '{"a":' * 60 + "1" + "}" * 60 + "}", "send_message"),
    # Too large.
    b"x" * (FRAME_BYTES + 1),
    _call('{"to":"ann","text":"' + "x" * FRAME_BYTES + '"}'),
    _call('{"to":"ann","text":"' + "x" * (64 * 1024 + 1) + '"}'),
    _call('{"to":"ann","content":"' + "€" * 30_000 + '"}', "send_message"),
    # Wrong types, missing and unknown arguments, fields that only the hub writes.
    _call("[]"),
    _call("null"),
    _call('"text"'),
    _call("{}"),
    _call('{"to":"ann"}'),
    _call('{"to":"ann","text":""}'),
    _call('{"to":"ann","text":5}'),
    _call('{"to":5,"text":"x"}'),
    _call('{"to":[],"text":"x"}'),
    _call('{"to":["ann",null],"text":"x"}'),
    _call('{"to":"ann","text":"x","sender_id":"bob"}'),
    _call('{"to":"ann","text":"x","seq":1}'),
    _call('{"to":"ann","text":"x","hop":0}'),
    _call('{"to":"ann","text":"x","cause":"m999999"}'),
    _call('{"to":"ann","text":"x","cause":"ann-m1"}'),
    _call('{"to":"ann","text":"x","mentions":["nobody"]}'),
    _call('{"to":"nobody","text":"x"}'),
    _call('{"to":"mallory","text":"x"}'),
    _call('{"to":"../../etc/passwd","text":"x"}'),
    _call('{"to":"dm.ann.bob","text":"x"}'),
    _call('{"thread":"dm.ann.bob"}', "read_thread"),
    _call('{"thread":"broadcast","limit":0}', "read_thread"),
    _call('{"thread":"broadcast","limit":101}', "read_thread"),
    _call('{"thread":"broadcast","before":-5}', "read_thread"),
    _call('{"id":"m0"}', "read_message"),
    _call('{"id":"m99999999999999999999"}', "read_message"),
    _call('{"id":"42"}', "read_message"),
    _call('{"channel":"nowhere","text":"x"}', "post_to_channel"),
    _call('{"name":"no spaces"}', "create_channel"),
    _call("{}", "drop_everything"),
    _call("{}", "__class__"),
    b'{"op":"call","ref":"","name":"list_threads"}',
    b'{"op":"call","ref":"' + b"r" * 65 + b'","name":"list_threads"}',
    b'{"op":"call","ref":7,"name":"list_threads"}',
    b'{"op":"call","name":"list_threads"}',
    b'{"op":"call","ref":"r"}',
    b'{"op":"call","ref":"r","name":7}',
    b'{"op":"call","ref":"r","name":"list_threads","cid":"no spaces"}',
    b'{"op":"call","ref":"r","name":"list_threads","cid":""}',
    b'{"op":"signal"}',
    b'{"op":"signal","type":"Not A Type"}',
    b'{"op":"signal","type":"typing","thread_id":7}',
    b'{"op":"identify"}',
    b'{"op":"identify","version":"hubbub.v1","participant":"no spaces","kind":"agent"}',
    b'{"op":"identify","version":"hubbub.v1","participant":"x","kind":"god"}',
    b'{"op":"event","seq":1}',
    b'{"op":"result","ref":"r","value":1}',
    b'{"op":"error","code":"x","message":"y"}',
    b'{"op":"hello"}',
)

_GOOD: Sequence[dict[str, JsonValue]] = (
    {"op": "ack", "seq": 0},
    {"op": "signal", "type": "typing", "thread_id": "direct_ann", "data": {"text": "…"}},
    {"op": "identify", "version": "hubbub.v1", "participant": "mallory", "kind": "agent"},
    {"op": "call", "ref": "1", "name": "list_threads", "args": {"limit": 3}},
    {"op": "call", "ref": "2", "name": "read_thread", "args": {"thread": "broadcast", "limit": 5}},
    {
        "op": "call",
        "ref": "3",
        "name": "send_text_message",
        "cid": "c-1",
        "args": {"to": "mallory2", "text": "hi @ann `code` @nobody", "mentions": [], "quote": None},
    },
    {
        "op": "call",
        "ref": "4",
        "name": "send_message",
        "args": {"to": ["mallory2", "ann"], "content": {"a": [1, 2.5, None, True, "ä"]}},
    },
    {"op": "call", "ref": "5", "name": "reply", "args": {"message_id": "m1", "text": "x"}},
)

_WORDS = ("ann", "mallory", "broadcast", "m1", "call", "\0", "\ud800", "")
_LETTERS = 'abc "\\{}[]:,ä€🙂\n\x7f\u200b\ud83d'


class _Maker:
    """Makes frames by chance, the same ones each time."""

    def __init__(self, seed: int):
        self._chance = random.Random(seed)

    def frame(self) -> Broken:
        make = self._chance.choice(
            [self._listed, self._bytes, self._no_frame, self._another_value, self._mutation]
        )
        return make()

    def _listed(self) -> Broken:
        return Broken(self._chance.choice(LISTED), True)

    def _bytes(self) -> Broken:
        size = self._chance.randint(0, 60)
        text = self._text(size).encode(errors="surrogatepass")
        return Broken(self._chance.choice([text, self._chance.randbytes(size)]), True)

    def _no_frame(self) -> Broken:
        return Broken(json.dumps(self._json()).encode(), True)

    def _another_value(self) -> Broken:
        """A good frame in which one value, of the frame or of the arguments, is another one."""
        frame = dict(self._chance.choice(_GOOD))
        args = frame.get("args")
        target = frame
        if isinstance(args, dict) and self._chance.random() < 0.5:
            target = frame["args"] = dict(args)
        target[self._chance.choice([*target, self._text(5)])] = self._json()
        text = json.dumps(frame, ensure_ascii=self._chance.random() < 0.5)
        return Broken(text.encode(errors="surrogatepass"), False)

    def _mutation(self) -> Broken:
        """A good frame of which some bytes are lost, doubled, foreign or changed."""
        chance = self._chance
        data = bytearray(json.dumps(chance.choice(_GOOD), ensure_ascii=False).encode())
        for _ in range(chance.randint(1, 3)):
            at = chance.randint(0, max(len(data) - 1, 0))
            end = min(len(data), at + chance.randint(1, 12))
            same = bytes(data[at:end])
            new = chance.choice([b"", same * 2, chance.randbytes(6), chance.randbytes(end - at)])
            data[at : chance.choice([end, len(data)])] = new
        return Broken(bytes(data), False)

    def _json(self, depth: int = 0) -> JsonValue:
        chance = self._chance
        match chance.randint(0, 6 if depth < 3 else 4):
            case 0:
                return chance.choice([None, True, False])
            case 1:
                return chance.choice([0, -1, 1, 2**31, 2**53, -(2**63), 2**64, 10**30])
            case 2:
                return chance.choice([0.5, -0.0, 1e300, math.nan, math.inf, chance.random()])
            case 3:
                return chance.choice(_WORDS)
            case 4:
                return self._text(20)
            case 5:
                return [self._json(depth + 1) for _ in range(chance.randint(0, 4))]
            case _:
                return {self._text(8): self._json(depth + 1) for _ in range(chance.randint(0, 4))}

    def _text(self, size: int) -> str:
        return "".join(self._chance.choices(_LETTERS, k=self._chance.randint(0, size)))


def corpus(count: int) -> list[Broken]:
    """So many frames; the listed ones come first."""
    maker = _Maker(1)
    return [*(Broken(data, True) for data in LISTED), *(maker.frame() for _ in range(count))][
        :count
    ]
