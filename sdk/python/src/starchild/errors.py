"""What can go wrong."""

from __future__ import annotations


class StarchildError(Exception):
    """Everything that this library raises of its own."""


class ApiError(StarchildError):
    """The server said no. Its `code` is one of the API document's."""

    def __init__(self, status: int, code: str, message: str):
        super().__init__(f"{status} {code}: {message}")
        self.status = status
        self.code = code


class Unreachable(StarchildError):
    """The server did not answer in the time that was given, tries included."""
