"""What a person can do where a tier cannot be had: from the words in which it was refused to the command that helps."""

from __future__ import annotations

_USER_NAMESPACES = (
    "let processes make user namespaces: on Ubuntu sysctl kernel.apparmor_restrict_unprivileged_userns=0, in Docker "
    "--security-opt seccomp=unconfined, elsewhere sysctl user.max_user_namespaces=10000"
)

# What was said, in parts, and what to do; the first that fits counts. Sources: bubblewrap's own messages, Ubuntu's
# notes on restricted user namespaces, Docker's on its default profile, the kernel's admin guide on Landlock.
_REMEDIES = (
    (("bubblewrap is not installed",), "install bubblewrap (apt install bubblewrap, dnf install bubblewrap)"),
    (
        ("mount proc", "mounting proc"),
        "the container hides parts of /proc: docker run --security-opt systempaths=unconfined",
    ),
    (
        ("uid map", "new namespace", "user namespace", "PID namespace", "unshare", "RTM_NEWADDR", "Failed to make /"),
        _USER_NAMESPACES,
    ),
    (("no Landlock",), "a kernel from 5.13 on, with landlock in the lsm= list of its command line"),
    (("belongs to another user",), "run handrail as the user to whom the workspace belongs"),
    (("can be reached",), "install bubblewrap, or stop that service, or accept it with sandbox='best'"),
    (("HANDRAIL_TIER",), "unset HANDRAIL_TIER"),
)


def remedy(reason: str) -> str:
    """A command or a setting, or "" where none is known."""
    return next((words for marks, words in _REMEDIES if any(mark in reason for mark in marks)), "")
