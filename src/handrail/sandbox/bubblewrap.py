"""A profile as the words of a bubblewrap command line. Pure: it looks at nothing and starts nothing.

Each option stands for something measured: without `--unshare-user` and `--cap-drop` root can mount the system anew, and
without the read-only /proc/sys it can write `core_pattern`, whatever its capabilities.
"""

from __future__ import annotations

from handrail.values.confinement import Mount, Profile

# A root without capabilities owns them. Which of them there are depends on the kernel.
_IN_PROC = ("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "scsi", "asound", "driver", "mtrr")


def argv(profile: Profile, program: str, *, network_is_shared: bool) -> list[str]:
    """All words before `--` and the command.

    `network_is_shared`: it is started in the network namespace that it is to have, and needs none of its own. What it
    runs has an empty environment (but for PWD), is process 1, and ends with whoever started it.
    """
    words = [program, "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"]
    if profile.network == "own" and not network_is_shared:
        words.append("--unshare-net")
    words += ["--new-session", "--die-with-parent", "--as-pid-1", "--clearenv", "--cap-drop", "ALL"]
    words += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys"]
    for name in _IN_PROC[1:]:
        words += ["--ro-bind-try", f"/proc/{name}", f"/proc/{name}"]
    for mount in profile.mounts:
        words += _words(mount)
    # Not before: what lies in an empty directory needs a place made for it.
    for mount in profile.mounts:
        if mount.source is None and not mount.writable:
            words += ["--remount-ro", mount.path]
    return [*words, "--chdir", "/"]


def _words(mount: Mount) -> list[str]:
    if mount.source is None:
        return ["--tmpfs", mount.path]
    return ["--bind" if mount.writable else "--ro-bind", mount.source, mount.path]
