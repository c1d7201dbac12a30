"""Restricts writing to one folder and reading to given paths: Landlock, on Linux from 5.13.

Structures and numbers are those of the kernel's `linux/landlock.h`; the calls have the same numbers
on all processors. Only the standard library.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence

__all__ = ["confine"]

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_BENEATH = 1
_WRITE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
_CHANGE = _WRITE | sum(1 << bit for bit in range(4, 13))
"""Write, and remove or make an entry of any kind."""
_READ, _LIST = 1 << 2, 1 << 3


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled", ctypes.c_uint64),)


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def confine(libc: ctypes.CDLL, folder: str, read: Sequence[str] | None = None) -> bool:
    """From now on this process can change files only below `folder`, whatever its user may do, and
    can read only what is at or below one of `read`; None: all that its user may.

    Needs PR_SET_NO_NEW_PRIVS. False if the system does not support it.
    """
    version = libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _ASK_VERSION)
    if version < 1:
        return False
    writes = _CHANGE | (_REFER if version >= 2 else 0) | (_TRUNCATE if version >= 3 else 0)
    reads = 0 if read is None else _READ | _LIST
    handled = _Ruleset(writes | reads)
    rules = libc.syscall(
        _CREATE_RULESET, ctypes.byref(handled), ctypes.c_size_t(ctypes.sizeof(handled)), 0
    )
    if rules < 0:
        return False
    try:
        allowed = _allow(libc, rules, folder, writes | reads) and _allow(
            libc, rules, os.devnull, writes & (_WRITE | _TRUNCATE)
        )
        for place in filter(os.path.exists, read or ()):
            access = reads if os.path.isdir(place) else _READ
            allowed = _allow(libc, rules, place, access) and allowed
        return allowed and bool(libc.syscall(_RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: str, access: int) -> bool:
    place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _Rule(access, place)
        return bool(libc.syscall(_ADD_RULE, rules, _BENEATH, ctypes.byref(rule), 0) == 0)
    finally:
        os.close(place)
