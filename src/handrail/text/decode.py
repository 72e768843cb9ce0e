"""Bytes to text, a chunk at a time: UTF-8, with U+FFFD for what is not. Nothing here raises for its input."""

from __future__ import annotations

import codecs

_CONTINUATION = bytes(range(0x80, 0xC0))


class Decoder:
    """Decodes a stream fed in chunks of any size; a character may lie across chunks.

    `invalid` is true once something had to be replaced by U+FFFD; a U+FFFD that was printed is none.
    """

    def __init__(self) -> None:
        self.invalid = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("strict")

    def feed(self, data: bytes | bytearray | memoryview) -> str:
        """The text of `data`, and of what earlier chunks left unfinished, without an unfinished last character."""
        return self._decode(bytes(data), final=False)

    def finish(self) -> str:
        """What is left: nothing, or U+FFFD for a character that never ended."""
        return self._decode(b"", final=True)

    def _decode(self, data: bytes, *, final: bool) -> str:
        try:
            return self._decoder.decode(data, final)
        except UnicodeDecodeError:
            # A strict failure leaves the decoder's pending bytes as they were, so the same data can be decoded
            # again with replacement. From here on strictness would only cost: the answer to `invalid` is known.
            self.invalid = True
            self._decoder.errors = "replace"
            return self._decoder.decode(data, final)


def skip_partial(tail: bytes) -> bytes:
    """`tail` without the end of a character that began before it: at most three continuation bytes."""
    lead = tail[:3]
    return tail[len(lead) - len(lead.lstrip(_CONTINUATION)) :]


def trim_partial(head: bytes) -> bytes:
    """`head` without the beginning of a character that ends after it: at most three bytes."""
    for back in range(1, min(3, len(head)) + 1):
        byte = head[-back]
        if byte < 0x80:
            break
        if byte >= 0xC0:
            return head[:-back] if back < _length(byte) else head
    return head


def _length(lead: int) -> int:
    """How many bytes a character beginning with `lead` has; 1 for what begins none."""
    if 0xC2 <= lead <= 0xDF:
        return 2
    if 0xE0 <= lead <= 0xEF:
        return 3
    return 4 if 0xF0 <= lead <= 0xF4 else 1
