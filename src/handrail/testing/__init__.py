"""Fakes for the seams, for the tests of programs that embed handrail, and for handrail's own."""

from handrail.testing.hosts import FakeHost, ended

__all__ = ["FakeHost", "ended"]
