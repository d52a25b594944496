"""Greets people."""

import sys


def greet(name: str) -> str:
    return "Hello!"


if __name__ == "__main__":
    print(greet(" ".join(sys.argv[1:]) or "you"))
