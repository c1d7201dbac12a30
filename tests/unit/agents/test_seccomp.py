"""The filter for system calls, run by a small BPF interpreter."""

from __future__ import annotations

import errno
import struct

from hypothesis import given
from hypothesis import strategies as st

from hubbub.agents.tools.sandbox.jail import (
    MACHINES,
    NEWEST,
    Architecture,
    ArgumentRule,
    architecture,
    program,
)

ARCH, REFUSED, CLONE, SEND, CONTROL = 0xC000003E, (41, 57, 58), 56, 44, 16
THREAD = 0x10000
RULES = (
    ArgumentRule(CLONE, 0, (THREAD,), bits=True),
    ArgumentRule(SEND, 5, (0, 7)),
    ArgumentRule(CONTROL, 1, (0x8901, 0x8902), allowed=False),
)
CODE = program(Architecture(ARCH, REFUSED, RULES))
ALLOWED = 0x7FFF0000
PID = 4711


def verdict(number: int, *arguments: int, arch: int = ARCH, code: bytes = CODE) -> int:
    """The filter's result for a call: classic BPF over `struct seccomp_data`."""
    given = (*arguments, 0, 0, 0, 0, 0, 0)[:6]
    number = number if number < 2**31 else number - 2**32
    data = struct.pack("=iIQ6Q", number, arch, 0, *given)
    at, loaded = 0, 0
    while True:
        op, yes, no, k = struct.unpack_from("=HBBI", code, at * 8)
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


@given(st.integers(0, NEWEST - 1))
def test_known_calls_are_allowed_unless_listed_as_refused(number: int) -> None:
    for each in REFUSED:
        assert verdict(each) == refused(errno.EPERM)
    if number not in (*REFUSED, CLONE, SEND, CONTROL, 435):
        assert verdict(number) == ALLOWED


@given(st.integers(NEWEST, 0x3FFFFFFF))
def test_calls_newer_than_the_tables_do_not_exist(number: int) -> None:
    assert verdict(number) == refused(errno.ENOSYS)
    assert verdict(435) == refused(errno.ENOSYS), "nor does clone3"


@given(st.integers(0, 2**32 - 1))
def test_threads_can_be_created_and_processes_cannot(flags: int) -> None:
    assert verdict(CLONE, flags | THREAD) == ALLOWED
    assert verdict(CLONE, flags & ~THREAD) == refused(errno.EPERM)


@given(st.integers(0, 2**64 - 1) | st.sampled_from([0, 7, 0x8901, 0x8902, 2**32 + 0x8901]))
def test_a_rule_allows_or_refuses_a_call_by_an_argument(value: int) -> None:
    listed = value & 0xFFFFFFFF in (0, 7)
    assert verdict(SEND, 1, 1, 1, 1, 1, value) == (ALLOWED if listed else refused(errno.EPERM))
    listed = value & 0xFFFFFFFF in (0x8901, 0x8902)
    assert verdict(CONTROL, 1, value) == (refused(errno.EPERM) if listed else ALLOWED)


@given(st.integers(0, 500), st.integers(0, 2**32 - 1), st.integers(0x40000000, 2**32 - 1))
def test_calls_of_another_architecture_or_calling_convention_are_refused(
    number: int, arch: int, kind: int
) -> None:
    if arch != ARCH:
        assert verdict(number, arch=arch) == refused(errno.EPERM)
    assert verdict(kind) == refused(errno.EPERM)


def known(name: str) -> Architecture:
    found = architecture(name, PID)
    assert found is not None
    return found


def test_each_table_lists_a_call_once_and_unknown_processors_have_none() -> None:
    assert architecture("riscv64", PID) is None
    for name in MACHINES:
        numbers = [*known(name).refused, *(rule.number for rule in known(name).rules)]
        assert len(numbers) == len(set(numbers))
        assert all(number < NEWEST for number in numbers)


def test_a_process_can_signal_and_limit_only_itself() -> None:
    for name, tgkill, prlimit, fcntl in (("x86_64", 234, 302, 72), ("aarch64", 131, 261, 25)):
        arch, code = known(name).arch, program(known(name))
        for number in (tgkill, prlimit):
            assert verdict(number, PID, arch=arch, code=code) == ALLOWED
            for other in (1, PID + 1, 2**32 - 1):
                assert verdict(number, other, arch=arch, code=code) == refused(errno.EPERM)
        for command in (8, 10, 15, 1024, 1026):
            assert verdict(fcntl, 3, command, arch=arch, code=code) == refused(errno.EPERM)
        assert verdict(fcntl, 3, 4, arch=arch, code=code) == ALLOWED  # F_SETFL
