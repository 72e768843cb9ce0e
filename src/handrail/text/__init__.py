"""Bytes to words: decode, clean, cut. Pure: no I/O, no clock, no threads, and nothing raises for its input."""
