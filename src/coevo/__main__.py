"""Entry point; imports lazily and exits without a traceback on Ctrl-C."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line."""
    try:
        from coevo.cli.app import app  # noqa: PLC0415 - inside the try block
    except KeyboardInterrupt:
        print("coevo: interrupted", file=sys.stderr)
        sys.exit(130)
    app()


if __name__ == "__main__":
    main()
