"""A filter in the kernel that refuses system calls, on Linux on x86-64 and ARM64.

The program is classic BPF as `seccomp(2)` wants it; which calls it refuses stands in `syscalls`.
Only the standard library.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct

from hubbub.agents.tools.sandbox.syscalls import NEWEST, Machine, Rule, machine

__all__ = ["install", "program"]

_CLONE3 = 435
_X32 = 0x40000000
"""Calls of another kind begin here; nobody needs them."""

_LOAD, _EQUAL, _AT_LEAST, _HAS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_REFUSE = _ERRNO | errno.EPERM
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_NUMBER, _ARCH, _ARGUMENTS, _WORD = 0, 4, 16, 8

_Code = list[tuple[int, int, int, int]]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install(libc: ctypes.CDLL) -> bool:
    """Put this process and what it starts under the filter. Needs PR_SET_NO_NEW_PRIVS."""
    known = machine(os.uname().machine, os.getpid())
    if known is None:
        return False
    code = program(known)
    room = ctypes.create_string_buffer(code, len(code))
    filter = _Program(len(code) // 8, ctypes.addressof(room))
    return bool(libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(filter), 0, 0) == 0)


def program(known: Machine) -> bytes:
    """The filter: calls of another architecture and those that are refused fail with EPERM, also
    those with other arguments than a rule wants; `clone3` (so that the C library uses `clone`) and
    calls that are not known with ENOSYS.
    """
    code: _Code = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, known.arch),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, _NUMBER),
        *_when(_AT_LEAST, _X32, errno.EPERM),
        *_when(_AT_LEAST, NEWEST, errno.ENOSYS),
        *_when(_EQUAL, _CLONE3, errno.ENOSYS),
        *(line for number in known.refused for line in _when(_EQUAL, number, errno.EPERM)),
        *(line for rule in known.rules for line in _by(rule)),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in code)


def _when(test: int, number: int, error: int) -> _Code:
    return [(test, 0, 1, number), (_RETURN, 0, 0, _ERRNO | error)]


def _by(rule: Rule) -> _Code:
    """Decides about the rule's call; passes over for any other."""
    found, other = (_ALLOW, _REFUSE) if rule.allowed else (_REFUSE, _ALLOW)
    test, count = _HAS if rule.bits else _EQUAL, len(rule.values)
    # Both processors are little-endian: the lower half of an argument comes first.
    block: _Code = [
        (_LOAD, 0, 0, _ARGUMENTS + _WORD * rule.argument),
        *((test, count - n, 0, value) for n, value in enumerate(rule.values)),
        (_RETURN, 0, 0, other),
        (_RETURN, 0, 0, found),
    ]
    return [(_EQUAL, 0, len(block), rule.number), *block]
