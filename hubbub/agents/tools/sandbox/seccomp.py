"""A filter in the kernel that refuses system calls, on Linux on x86-64 and ARM64.

Numbers are those of the kernel's `asm/unistd.h`; the program is classic BPF as `seccomp(2)` wants
it. Only the standard library.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Sequence

__all__ = ["install", "program"]

_DENIED: dict[str, tuple[int, tuple[int, ...], int]] = {
    # machine: (AUDIT_ARCH, numbers that are refused, clone)
    "x86_64": (
        0xC000003E,
        (
            *(41,),  # socket
            *(57, 58, 59, 322),  # fork, vfork, execve, execveat
            *(62, 200, 129, 297, 424, 434, 438),  # kill and its kin, pidfd_*
            *(101, 310, 311),  # ptrace, process_vm_*
            *(155, 161, 165, 166, 272, 308, 428, 429, 430, 442),  # roots, mounts, unshare, setns
            *(246, 175, 313, 248, 249, 250),  # kernel, modules, keys
            *(298, 304, 321, 323, 425),  # perf, handles, bpf, userfaultfd, io_uring
        ),
        56,
    ),
    "aarch64": (
        0xC00000B7,
        (
            *(198,),
            *(221, 281),
            *(129, 130, 138, 240, 424, 434, 438),
            *(117, 270, 271),
            *(41, 51, 40, 39, 97, 268, 428, 429, 430, 442),
            *(104, 105, 273, 217, 218, 219),
            *(241, 265, 280, 282, 425),
        ),
        220,
    ),
}
_CLONE3 = 435
_CLONE_THREAD = 0x10000
_X32 = 0x40000000
"""Calls of another kind begin here; nobody needs them."""

_LOAD, _EQUAL, _AT_LEAST, _HAS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_NUMBER, _ARCH, _FIRST_ARGUMENT = 0, 4, 16

_Code = list[tuple[int, int, int, int]]


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install(libc: ctypes.CDLL) -> bool:
    """Put this process and what it starts under the filter. Needs PR_SET_NO_NEW_PRIVS."""
    known = _DENIED.get(os.uname().machine)
    if known is None:
        return False
    code = program(*known)
    room = ctypes.create_string_buffer(code, len(code))
    filter = _Program(len(code) // 8, ctypes.addressof(room))
    return bool(libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(filter), 0, 0) == 0)


def program(arch: int, denied: Sequence[int], clone: int) -> bytes:
    """The filter: calls of another architecture and those `denied` fail with EPERM, a `clone` that
    makes no thread too, `clone3` with ENOSYS (so that the C library uses `clone`).
    """
    code: _Code = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, arch),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_LOAD, 0, 0, _NUMBER),
        *_when(_AT_LEAST, _X32, errno.EPERM),
        *(line for number in denied for line in _when(_EQUAL, number, errno.EPERM)),
        *_when(_EQUAL, _CLONE3, errno.ENOSYS),
        (_EQUAL, 0, 3, clone),
        (_LOAD, 0, 0, _FIRST_ARGUMENT),
        (_HAS, 1, 0, _CLONE_THREAD),
        (_RETURN, 0, 0, _ERRNO | errno.EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in code)


def _when(test: int, number: int, error: int) -> _Code:
    return [(test, 0, 1, number), (_RETURN, 0, 0, _ERRNO | error)]
