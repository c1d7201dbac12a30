"""The filter for system calls, run by a small machine as the kernel would."""

from __future__ import annotations

import errno
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hubbub.agents.tools.sandbox.seccomp import program

ARCH, DENIED, CLONE = 0xC000003E, (41, 57, 58), 56
CODE = program(ARCH, DENIED, CLONE)
ALLOWED = 0x7FFF0000
THREAD = 0x10000


def verdict(number: int, *, arch: int = ARCH, flags: int = 0) -> int:
    """What the filter returns for a call: classic BPF over `struct seccomp_data`."""
    data = struct.pack("=iIQQ", number if number < 2**31 else number - 2**32, arch, 0, flags)
    at, loaded = 0, 0
    while True:
        op, yes, no, k = struct.unpack_from("=HBBI", CODE, at * 8)
        at += 1
        match op:
            case 0x20:
                (loaded,) = struct.unpack_from("=I", data, k)
            case 0x15:
                at += yes if loaded == k else no
            case 0x35:
                at += yes if loaded >= k else no
            case 0x45:
                at += yes if loaded & k else no
            case 0x06:
                assert isinstance(k, int)
                return k
            case _:
                raise AssertionError(f"unknown instruction {op:#x}")


def refused(code: int) -> int:
    return 0x50000 | code


@pytest.mark.parametrize("number", DENIED)
def test_what_is_denied_fails(number: int) -> None:
    assert verdict(number) == refused(errno.EPERM)


@given(st.integers(0, 0x3FFFFFFF))
def test_everything_else_is_allowed(number: int) -> None:
    if number not in (*DENIED, CLONE, 435):
        assert verdict(number) == ALLOWED


@given(st.integers(0, 2**32 - 1))
def test_a_thread_may_be_made_and_a_process_not(flags: int) -> None:
    # struct seccomp_data has its first argument at 16, where `flags` is put
    assert verdict(CLONE, flags=flags | THREAD) == ALLOWED
    assert verdict(CLONE, flags=flags & ~THREAD) == refused(errno.EPERM)


def test_the_newer_clone_seems_not_to_exist() -> None:
    assert verdict(435) == refused(errno.ENOSYS)


@given(st.integers(0, 500), st.integers(0, 2**32 - 1))
def test_calls_of_another_architecture_fail(number: int, arch: int) -> None:
    if arch != ARCH:
        assert verdict(number, arch=arch) == refused(errno.EPERM)


@given(st.integers(0x40000000, 2**32 - 1))
def test_calls_of_another_kind_fail(number: int) -> None:
    assert verdict(number) == refused(errno.EPERM)
