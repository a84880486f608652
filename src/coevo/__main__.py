"""The door: `coevo` at the prompt and `python -m coevo`; opens quickly and shuts without a bang."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, of which Ctrl-C may find us still importing the parts."""
    try:
        from coevo.cli import app  # noqa: PLC0415 - takes a second, in which people change their mind
    except KeyboardInterrupt:
        print("coevo: interrupted", file=sys.stderr)
        sys.exit(130)
    app()


if __name__ == "__main__":
    main()
