"""Frozen values that travel between the layers. Nothing here does anything: no I/O, no clock, no threads."""
