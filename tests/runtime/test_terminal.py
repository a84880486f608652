"""Texts made safe to print."""

from coevo.runtime.terminal import printable


def test_control_characters_are_escaped():
    assert printable("Köln 🌳 [red]") == "Köln 🌳 [red]"
    assert printable("a\x1b[31mb\n\t\x07\x9b") == "a\\x1b[31mb\\n\\t\\x07\\x9b"
    assert printable("\u202ebidi\ud800") == "\\u202ebidi\\ud800"
