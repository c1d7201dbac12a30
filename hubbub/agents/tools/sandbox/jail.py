"""The restrictions that the sandboxed process imposes on itself before it runs the function.

Uses only the standard library, because it runs before anything else is trusted. Layers that the
system does not support are skipped. `enter` returns the active ones.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import signal
import struct
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = [
    "MACHINES",
    "NEWEST",
    "Architecture",
    "ArgumentRule",
    "architecture",
    "enter",
    "install",
    "program",
]


# Landlock (Linux 5.13 and later) restricts writing to one folder and reading to given paths.
# Structures and constants are from the kernel's `linux/landlock.h`. The system call numbers are the
# same on all processors.


_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1
_BENEATH = 1
_WRITE, _REFER, _TRUNCATE = 1 << 1, 1 << 13, 1 << 14
_CHANGE = _WRITE | sum(1 << bit for bit in range(4, 13))
"""Write, and create or remove entries of any kind."""
_READ, _LIST = 1 << 2, 1 << 3


class _Ruleset(ctypes.Structure):
    _fields_ = (("handled", ctypes.c_uint64),)


class _Rule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("folder", ctypes.c_int32))


def confine(libc: ctypes.CDLL, folder: str, read: Sequence[str] | None = None) -> bool:
    """Restrict this process to writing below `folder`, and to reading at or below the paths in
    `read`; if that is None, reading is not restricted.

    Requires PR_SET_NO_NEW_PRIVS. False if the system does not support Landlock.
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
        for path in filter(os.path.exists, read or ()):
            access = reads if os.path.isdir(path) else _READ
            allowed = _allow(libc, rules, path, access) and allowed
        return allowed and bool(libc.syscall(_RESTRICT_SELF, rules, 0) == 0)
    finally:
        os.close(rules)


def _allow(libc: ctypes.CDLL, rules: int, path: str, access: int) -> bool:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        rule = _Rule(access, descriptor)
        return bool(libc.syscall(_ADD_RULE, rules, _BENEATH, ctypes.byref(rule), 0) == 0)
    finally:
        os.close(descriptor)


# seccomp (Linux on x86-64 and ARM64) is a kernel filter that rejects system calls. The program is
# classic BPF, see `seccomp(2)`. System call numbers are from the kernel's `asm/unistd.h`.


MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""AUDIT_ARCH of the supported processors."""

NEWEST = 463
"""System calls from this number on are newer than these tables; programs cannot rely on them."""

_REFUSED: dict[str, tuple[int | None, int | None]] = {
    # the network, and local sockets of other processes
    **{"socket": (41, 198), "connect": (42, 203), "bind": (49, 200), "listen": (50, 201)},
    **{"accept": (43, 202), "accept4": (288, 242), "sendmsg": (46, 211), "sendmmsg": (307, 269)},
    # programs and processes
    **{"fork": (57, None), "vfork": (58, None), "execve": (59, 221), "execveat": (322, 281)},
    # signals to other processes
    **{"kill": (62, 129), "tkill": (200, 130), "rt_sigqueueinfo": (129, 138)},
    **{"rt_tgsigqueueinfo": (297, 240), "pidfd_send_signal": (424, 424)},
    **{"pidfd_open": (434, 434), "pidfd_getfd": (438, 438)},
    # memory of other processes
    **{"ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271)},
    **{"process_madvise": (440, 440), "process_mrelease": (448, 448), "kcmp": (312, 272)},
    **{"move_pages": (279, 239), "migrate_pages": (256, 238)},
    # scheduling of other processes
    **{"setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setparam": (142, 118)},
    **{"sched_setscheduler": (144, 119), "sched_setaffinity": (203, 122)},
    **{"sched_setattr": (314, 274)},
    # System V shared memory, semaphores and queues, which outlive their creator
    **{"shmget": (29, 194), "shmat": (30, 196), "shmctl": (31, 195), "shmdt": (67, 197)},
    **{"semget": (64, 190), "semop": (65, 193), "semtimedop": (220, 192), "semctl": (66, 191)},
    **{"msgget": (68, 186), "msgsnd": (69, 189), "msgrcv": (70, 188), "msgctl": (71, 187)},
    # POSIX queues
    **{"mq_open": (240, 180), "mq_unlink": (241, 181), "mq_timedsend": (242, 182)},
    **{"mq_timedreceive": (243, 183), "mq_notify": (244, 184), "mq_getsetattr": (245, 185)},
    # root directories, mounts, namespaces
    **{"pivot_root": (155, 41), "chroot": (161, 51), "mount": (165, 40), "umount2": (166, 39)},
    **{"unshare": (272, 97), "setns": (308, 268), "open_tree": (428, 428)},
    **{"move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431)},
    **{"fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442)},
    # system administration, for an agent that runs as root
    **{"swapon": (167, 224), "swapoff": (168, 225), "quotactl": (179, 60), "acct": (163, 89)},
    **{"quotactl_fd": (443, 443), "fanotify_init": (300, 262), "reboot": (169, 142)},
    **{"kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105)},
    **{"finit_module": (313, 273), "delete_module": (176, 106), "settimeofday": (164, 170)},
    **{"adjtimex": (159, 171), "clock_settime": (227, 112), "clock_adjtime": (305, 266)},
    **{"sethostname": (170, 161), "setdomainname": (171, 162), "syslog": (103, 116)},
    **{"vhangup": (153, 58), "iopl": (172, None), "ioperm": (173, None)},
    # keys, and calls with a history of vulnerabilities
    **{"add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219)},
    **{"perf_event_open": (298, 241), "open_by_handle_at": (304, 265), "bpf": (321, 280)},
    **{"userfaultfd": (323, 282), "io_uring_setup": (425, 425)},
}

_CLONE_THREAD = 0x10000
_AF_UNIX = 1
_PR_SET_PDEATHSIG = 1
_LOCAL_FCNTL = (
    *range(8),  # copies of the descriptor, its flags, locks
    *(9, 11),  # reading the receiver and number of signals
    *(36, 37, 38),  # locks of the open file
    *(1025, 1027, 1028, 1030, 1031, 1032, 1033, 1034),  # pipes, seals, copies
    *(1035, 1036, 1037, 1038),  # hints
)
"""Excludes setting the receiver of signals (F_SETOWN, F_SETSIG), and leases, which block other
processes."""
_FOREIGN_IOCTL = (
    *(0x8901, 0x8902),  # FIOSETOWN, SIOCSPGRP: set the receiver of signals
    *(0x540E, 0x5412, 0x541C),  # TIOCSCTTY, TIOCSTI, TIOCLINUX: type into a terminal
)


@dataclass(frozen=True, slots=True)
class ArgumentRule:
    """A rule for a system call, based on the lower 32 bits of one argument."""

    number: int
    argument: int
    """From 0."""
    values: tuple[int, ...]
    allowed: bool = True
    """Whether the call is allowed only with these values, or only with others."""
    bits: bool = False
    """Whether the argument matches a value by sharing a bit with it, rather than by equality."""


@dataclass(frozen=True, slots=True)
class Architecture:
    """The rules for one processor architecture."""

    arch: int
    refused: tuple[int, ...]
    rules: tuple[ArgumentRule, ...]


def architecture(name: str, pid: int) -> Architecture | None:
    """The rules for the process `pid` on the processor `name`, as reported by `uname`; None if the
    processor is not supported.
    """
    if name not in MACHINES:
        return None
    arm = name == "aarch64"
    refused = (both[arm] for both in _REFUSED.values())
    rules = (
        ArgumentRule(220 if arm else 56, 0, (_CLONE_THREAD,), bits=True),
        ArgumentRule(131 if arm else 234, 0, (pid,)),  # tgkill
        ArgumentRule(261 if arm else 302, 0, (0, pid)),  # prlimit64
        ArgumentRule(206 if arm else 44, 5, (0,)),  # sendto: without an address equals `send`
        ArgumentRule(199 if arm else 53, 0, (_AF_UNIX,)),  # socketpair
        ArgumentRule(25 if arm else 72, 1, _LOCAL_FCNTL),
        ArgumentRule(29 if arm else 16, 1, _FOREIGN_IOCTL, allowed=False),
        ArgumentRule(167 if arm else 157, 0, (_PR_SET_PDEATHSIG,), allowed=False),  # prctl
    )
    return Architecture(MACHINES[name], tuple(n for n in refused if n is not None), rules)


_CLONE3 = 435
_X32 = 0x40000000
"""System calls of the x32 ABI start at this number; nothing needs them."""

_LOAD, _EQUAL, _AT_LEAST, _HAS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_REFUSE = _ERRNO | errno.EPERM
_PR_SET_SECCOMP, _MODE_FILTER = 22, 2
_NUMBER, _ARCH, _ARGUMENTS, _WORD = 0, 4, 16, 8

_Code = list[tuple[int, int, int, int]]


class _BpfProgram(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def install(libc: ctypes.CDLL) -> bool:
    """Install the filter for this process and its children. Requires PR_SET_NO_NEW_PRIVS."""
    rules = architecture(os.uname().machine, os.getpid())
    if rules is None:
        return False
    code = program(rules)
    buffer = ctypes.create_string_buffer(code, len(code))
    filter = _BpfProgram(len(code) // 8, ctypes.addressof(buffer))
    return bool(libc.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(filter), 0, 0) == 0)


def program(rules: Architecture) -> bytes:
    """The filter program. Calls of another architecture, forbidden calls, and calls with forbidden
    arguments fail with EPERM. Unknown calls fail with ENOSYS, and so does `clone3`, so that the C
    library uses `clone`.
    """
    code: _Code = [
        (_LOAD, 0, 0, _ARCH),
        (_EQUAL, 1, 0, rules.arch),
        (_RETURN, 0, 0, _REFUSE),
        (_LOAD, 0, 0, _NUMBER),
        *_fail_if(_AT_LEAST, _X32, errno.EPERM),
        *_fail_if(_AT_LEAST, NEWEST, errno.ENOSYS),
        *_fail_if(_EQUAL, _CLONE3, errno.ENOSYS),
        *(line for number in rules.refused for line in _fail_if(_EQUAL, number, errno.EPERM)),
        *(line for rule in rules.rules for line in _apply(rule)),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("=HBBI", *line) for line in code)


def _fail_if(test: int, number: int, error: int) -> _Code:
    return [(test, 0, 1, number), (_RETURN, 0, 0, _ERRNO | error)]


def _apply(rule: ArgumentRule) -> _Code:
    """Decide the rule's call; skip all others."""
    on_match, otherwise = (_ALLOW, _REFUSE) if rule.allowed else (_REFUSE, _ALLOW)
    test, count = _HAS if rule.bits else _EQUAL, len(rule.values)
    # Both architectures are little-endian: the lower half of an argument comes first.
    block: _Code = [
        (_LOAD, 0, 0, _ARGUMENTS + _WORD * rule.argument),
        *((test, count - n, 0, value) for n, value in enumerate(rule.values)),
        (_RETURN, 0, 0, otherwise),
        (_RETURN, 0, 0, on_match),
    ]
    return [(_EQUAL, 0, len(block), rule.number), *block]


# Combines all layers.


_CLONE_NEWUSER, _CLONE_NEWNET = 0x10000000, 0x40000000
_PR_SET_NO_NEW_PRIVS = 38
_SET_SIGNAL_RECEIVER = (8, 10, 15) if sys.platform == "linux" else (6,)
"""F_SETOWN and similar, which name the process that is signaled when a file is ready."""
_FORBIDDEN = {
    "os.exec": "start programs",
    "os.fork": "start processes",
    "os.forkpty": "start processes",
    "os.posix_spawn": "start processes",
    "os.spawn": "start processes",
    "os.system": "start processes",
    "pty.spawn": "start processes",
    "subprocess.Popen": "start processes",
    "os.kill": "signal processes",
    "os.killpg": "signal processes",
    "socket.bind": "use the network",
    "socket.connect": "use the network",
    "socket.getaddrinfo": "use the network",
    "socket.gethostbyaddr": "use the network",
    "socket.gethostbyname": "use the network",
    "socket.getnameinfo": "use the network",
    "socket.sendmsg": "use the network",
    "socket.sendto": "use the network",
}


def enter(limits: Mapping[str, float], parent: int, read: Sequence[str] | None = None) -> list[str]:
    """Drop all permissions that the function must not have. Unless `read` is None, only these paths
    stay readable. Returns the names of the active layers.
    """
    layers = ["limits", "hook"]
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux":
        libc.prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)  # the agent died before the call
        if _own_network(libc):
            layers.append("namespace")
    _limit(limits, counted="namespace" in layers)
    if sys.platform == "linux":
        libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if confine(libc, os.getcwd(), read):
            layers.append("landlock")
        if install(libc):
            layers.append("seccomp")
    sys.addaudithook(_refuse)
    return layers


def _own_network(libc: ctypes.CDLL) -> bool:
    """Enter a network namespace without interfaces, as a user without rights outside of it."""
    user, group = os.getuid(), os.getgid()
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) != 0:
        return False
    with contextlib.suppress(OSError):  # optional: the user `nobody` works, too
        _write("/proc/self/setgroups", "deny")
        _write("/proc/self/uid_map", f"{user} {user} 1")
        _write("/proc/self/gid_map", f"{group} {group} 1")
    return True


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="ascii") as file:
        file.write(text)


def _limit(limits: Mapping[str, float], *, counted: bool) -> None:
    import resource  # missing on some systems; then the import fails and nothing runs

    cpu = max(1, round(limits["cpu"]))
    settings = [
        (resource.RLIMIT_CORE, 0, 0),
        (resource.RLIMIT_CPU, cpu, cpu + 1),
        (resource.RLIMIT_FSIZE, int(limits["file"]), int(limits["file"])),
        (resource.RLIMIT_NOFILE, int(limits["files"]), int(limits["files"])),
        (resource.RLIMIT_AS, int(limits["memory"]), int(limits["memory"])),
    ]
    if counted:  # otherwise all processes of the user would count
        settings.append((resource.RLIMIT_NPROC, int(limits["threads"]), int(limits["threads"])))
    for limit, soft, hard in settings:
        _, maximum = resource.getrlimit(limit)
        if maximum != resource.RLIM_INFINITY:
            soft, hard = min(soft, maximum), min(hard, maximum)
        with contextlib.suppress(OSError, ValueError):  # macOS defines RLIMIT_AS but rejects it
            resource.setrlimit(limit, (soft, hard))


def _refuse(event: str, arguments: tuple[object, ...]) -> None:
    action = _FORBIDDEN.get(event)
    if event == "socket.__new__" and len(arguments) > 1 and arguments[1] != _AF_UNIX:
        action = "use the network"  # asyncio needs local sockets to wake itself up
    if event == "fcntl.fcntl" and arguments[1] in _SET_SIGNAL_RECEIVER:
        action = "signal processes"
    if event == "resource.prlimit" and arguments[0] not in (0, os.getpid()):
        action = "limit other processes"
    if action is not None:
        raise PermissionError(f"a sandboxed tool may not {action}")
