"""Run as a program, never imported: puts every signal back to its default, unblocks all, and becomes the command.

Used only where the host program ignores or blocks signals, at the price of one interpreter start (T0 has no other way).
Usage: python -I -S clean_start.py PROGRAM ARGV0 [ARG ...]
"""

import os
import signal
import sys

for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    try:
        signal.signal(number, signal.SIG_DFL)
    except (OSError, ValueError):
        continue  # the C library keeps a few for itself
signal.pthread_sigmask(signal.SIG_SETMASK, ())
os.execv(sys.argv[1], sys.argv[2:])  # noqa: S606 - becoming the command is its whole task
