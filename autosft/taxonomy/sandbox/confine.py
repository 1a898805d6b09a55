"""Confinement of the calling process, as far as the kernel allows it. Standard library only; Linux.

Layers, each tried on its own and reported:

    limits      CPU time, memory, file size, open files, core dumps (setrlimit)
    network     a network namespace without interfaces
    files       a mount namespace: everything is read-only but the working folder
    seccomp     no new processes, sockets, signals to others or tracing; where `files` could not be had, no
                file can be written, made, renamed or removed either

Source: user_namespaces(7), mount_namespaces(7), seccomp(2), setrlimit(2).
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import signal
import struct
import sys

_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP = 1, 38, 22
_NEW_USER, _NEW_NET, _NEW_MOUNT, _NEW_IPC = 0x10000000, 0x40000000, 0x00020000, 0x08000000
_BIND, _REMOUNT, _READ_ONLY, _RECURSIVE, _PRIVATE = 0x1000, 0x20, 0x1, 0x4000, 0x40000
# Options that a mount namespace of lesser rights must repeat when it changes a mount.
_KEPT = {
    "nosuid": 0x2,
    "nodev": 0x4,
    "noexec": 0x8,
    "noatime": 0x400,
    "nodiratime": 0x800,
    "relatime": 0x200000,
}
_ALLOW, _ERRNO, _KILL = 0x7FFF0000, 0x00050000, 0x80000000
_THREAD, _X32 = 0x00010000, 0x40000000
_CAPABILITIES_V3 = 0x20080522
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Numbers of system calls: (audit architecture, {name: number}).
_CALLS = {
    "x86_64": (
        0xC000003E,
        {
            "clone": 56, "clone3": 435, "fork": 57, "vfork": 58, "socket": 41, "socketpair": 53, "kill": 62,
            "tkill": 200, "tgkill": 234, "ptrace": 101, "process_vm_readv": 310, "process_vm_writev": 311,
            "pidfd_send_signal": 424, "pidfd_open": 434, "unshare": 272, "setns": 308,
            "mount": 165, "umount2": 166,
            "io_uring_setup": 425, "execve": 59, "execveat": 322, "open": 2, "openat": 257, "openat2": 437,
            "creat": 85, "rename": 82, "renameat": 264, "renameat2": 316, "unlink": 87, "unlinkat": 263,
            "mkdir": 83, "mkdirat": 258, "rmdir": 84, "link": 86, "linkat": 265, "symlink": 88,
            "symlinkat": 266, "truncate": 76, "chmod": 90, "fchmodat": 268, "chown": 92, "lchown": 94,
            "fchownat": 260,
            "mknod": 133, "mknodat": 259, "utimensat": 280, "setxattr": 188,
        },
    ),
    "aarch64": (
        0xC00000B7,
        {
            "clone": 220, "clone3": 435, "socket": 198, "socketpair": 199, "kill": 129, "tkill": 130,
            "tgkill": 131, "ptrace": 117, "process_vm_readv": 270, "process_vm_writev": 271,
            "pidfd_send_signal": 424, "pidfd_open": 434, "unshare": 97, "setns": 268,
            "mount": 40, "umount2": 39,
            "io_uring_setup": 425, "execve": 221, "execveat": 281, "openat": 56, "openat2": 437,
            "renameat": 38, "renameat2": 276, "unlinkat": 35, "mkdirat": 34, "linkat": 37, "symlinkat": 36,
            "truncate": 45, "fchmodat": 53, "fchownat": 54, "mknodat": 33, "utimensat": 88, "setxattr": 5,
        },
    ),
}  # fmt: skip
# The same on both.
_NEW_MOUNTS = {"open_tree": 428, "move_mount": 429, "fsopen": 430, "fspick": 433, "mount_setattr": 442}
_NEVER = (
    "fork", "vfork", "execve", "execveat", "socket", "socketpair", "io_uring_setup", "kill", "tkill",
    "pidfd_send_signal", "pidfd_open", "ptrace", "process_vm_readv", "process_vm_writev", "unshare", "setns",
    "mount", "umount2", "open_tree", "move_mount", "fsopen", "fspick", "mount_setattr",
)  # fmt: skip
_CHANGING = (
    "creat", "rename", "renameat", "renameat2", "unlink", "unlinkat", "mkdir", "mkdirat", "rmdir", "link",
    "linkat", "symlink", "symlinkat", "truncate", "chmod", "fchmodat", "chown", "lchown", "fchownat", "mknod",
    "mknodat", "utimensat", "setxattr", "openat2",
)  # fmt: skip


def confine(cpu_s: int, memory_bytes: int, file_bytes: int) -> list[str]:
    """Confine this process for good; its working folder is the only place it may write to.

    Args:
        cpu_s: Processor time; the process is killed beyond it.
        memory_bytes: Address space.
        file_bytes: Largest file.

    Returns:
        Names of the layers that hold.
    """
    layers = []
    libc = ctypes.CDLL(None, use_errno=True)
    if sys.platform == "linux":
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        layers += _namespaces(libc)
        _drop_capabilities(libc)
    for limit, value in (
        (resource.RLIMIT_CPU, cpu_s),
        (resource.RLIMIT_AS, memory_bytes),
        (resource.RLIMIT_FSIZE, file_bytes),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_CORE, 0),
    ):
        resource.setrlimit(limit, (value, value))
    layers.append("limits")
    if sys.platform == "linux" and _filter(libc, guard_files="files" not in layers):
        layers.append("seccomp")
    return layers


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Give up the rights of root, and those that a user namespace of one's own brings."""
    header = ctypes.create_string_buffer(struct.pack("Ii", _CAPABILITIES_V3, 0))
    libc.capset(header, ctypes.create_string_buffer(struct.pack("6I", *[0] * 6)))


def _namespaces(libc: ctypes.CDLL) -> list[str]:
    uid, gid = os.getuid(), os.getgid()
    if libc.unshare(_NEW_USER | _NEW_NET | _NEW_MOUNT | _NEW_IPC) != 0:
        return []
    try:
        for name, text in (
            ("setgroups", "deny"),
            ("uid_map", f"{uid} {uid} 1"),
            ("gid_map", f"{gid} {gid} 1"),
        ):
            with open(f"/proc/self/{name}", "w") as stream:
                stream.write(text)
    except OSError:
        return ["network"]
    return ["network", "files"] if _read_only(libc, os.getcwd()) else ["network"]


def _read_only(libc: ctypes.CDLL, folder: str) -> bool:
    """Make every mount read-only but the given folder."""
    here = os.fsencode(folder)
    if libc.mount(b"none", b"/", None, _RECURSIVE | _PRIVATE, None) or libc.mount(
        here, here, None, _BIND, None
    ):
        return False
    os.chdir(folder)  # the working folder is now the bind mount
    with open("/proc/self/mountinfo") as stream:
        mounts = [line.split() for line in stream]
    for fields in mounts:
        point, options = os.fsencode(fields[4].encode().decode("unicode_escape")), fields[5].split(",")
        if point == here:
            continue
        flags = _BIND | _REMOUNT | _READ_ONLY
        for option in options:
            flags |= _KEPT.get(option, 0)
        if libc.mount(b"none", point, None, flags, None) and ctypes.get_errno() not in (
            errno.EINVAL,
            errno.ENOENT,
        ):
            return False
    return True


def _filter(libc: ctypes.CDLL, guard_files: bool) -> bool:
    """Install the filter of system calls; False where this machine has none."""
    if platform.machine() not in _CALLS:
        return False
    architecture, numbers = _CALLS[platform.machine()]
    numbers = {**numbers, **_NEW_MOUNTS}
    deny, allow = (0x06, 0, 0, _ERRNO | errno.EPERM), (0x06, 0, 0, _ALLOW)
    # Another architecture's numbers mean other calls.
    code = [(0x20, 0, 0, 4), (0x15, 1, 0, architecture), (0x06, 0, 0, _KILL), (0x20, 0, 0, 0)]
    if platform.machine() == "x86_64":
        code += [(0x35, 0, 1, _X32), deny]  # the same calls under other numbers

    def refuse(name: str) -> None:
        if name in numbers:
            code.extend([(0x15, 0, 1, numbers[name]), deny])

    for name in _NEVER + (_CHANGING if guard_files else ()):
        refuse(name)
    # The C library falls back to clone, whose flags can be read here.
    code.extend([(0x15, 0, 1, numbers["clone3"]), (0x06, 0, 0, _ERRNO | errno.ENOSYS)])
    code.extend([(0x15, 0, 4, numbers["clone"]), _argument(0), (0x45, 1, 0, _THREAD), deny, allow])
    # A thread may signal its own process only.
    code.extend([(0x15, 0, 4, numbers["tgkill"]), _argument(0), (0x15, 1, 0, os.getpid()), deny, allow])
    if guard_files:
        for name, argument in (("open", 1), ("openat", 2)):
            if name in numbers:
                code.extend(
                    [
                        (0x15, 0, 4, numbers[name]),
                        _argument(argument),
                        (0x45, 0, 1, _WRITING),
                        deny,
                        allow,
                    ]
                )
    code.append(allow)
    program = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in code))

    class Program(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("steps", ctypes.c_void_p))

    given = Program(len(code), ctypes.cast(program, ctypes.c_void_p))
    refused: int = libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) or libc.prctl(
        _PR_SET_SECCOMP, 2, ctypes.byref(given), 0, 0
    )
    return refused == 0


def _argument(k: int) -> tuple[int, int, int, int]:
    """Step that loads the low half of a call's k-th argument."""
    return (0x20, 0, 0, 16 + 8 * k)
