"""Makes text from files safe to print."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return a text with control characters written as escapes, as `repr` does.

    A class label or a column's name could otherwise move the cursor, colour the terminal or change
    its title. Line breaks are escaped too: print the lines of a longer text one by one.
    """
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() or character == " " else repr(character)[1:-1]
        for character in text
    )
