"""`python -m kubesched`: the same as the command `kubesched`."""

from __future__ import annotations

from kubesched.cli.main import main

if __name__ == "__main__":
    main(prog_name="kubesched")
