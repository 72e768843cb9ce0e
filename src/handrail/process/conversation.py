"""Takes the host's requests off a socket: for the warden and its keepers, part of whose programs this is."""

from __future__ import annotations

import json
import socket

TYPE_CHECKING = False  # as `typing` has it, without loading that
if TYPE_CHECKING:
    from typing import Any

# A request brings at most two ends of pipes, a memory file, and a pipe that tells when nothing of the call is left.
DESCRIPTORS = 8
MESSAGE_BYTES = 128 * 1024


def receive(conversation: socket.socket) -> tuple[dict[str, Any] | None, list[int]]:
    """One request and its descriptors; (None, []) at the end. A long one lies in the last descriptor, a memory file.

    `socket.recv_fds` drops its flags, and the descriptors would be inherited by every command: hence recvmsg.
    """
    try:
        data, ancillary, _, _ = conversation.recvmsg(
            MESSAGE_BYTES, socket.CMSG_SPACE(DESCRIPTORS * 4), socket.MSG_CMSG_CLOEXEC
        )
    except OSError:
        return None, []
    fds: list[int] = []
    for level, kind, payload in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds += memoryview(payload[: len(payload) - len(payload) % 4]).cast("i").tolist()
    if not data:
        return None, fds
    request = json.loads(data)
    if request.get("do") == "read":
        memory = fds.pop()
        with open(memory, "rb") as file:
            file.seek(0)
            request = json.loads(file.read())
    return request, fds
