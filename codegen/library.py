# SPDX-License-Identifier: MIT
"""What the runtime is told of targets and of the operations that a build has: one C file.

python -m codegen.library --api fwd --out tessera_library.c
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from codegen import Refused
from codegen.ops import MASKS, parse_apis
from codegen.pack import interface
from codegen.render import provenance, render
from codegen.targets import TARGETS

TEMPLATE = "dispatch/library.c.j2"


def library_source(apis: str) -> str:
    """The file for a comma list of apis."""
    ops = [one.name for op in parse_apis(apis, MASKS[0]) for one in (*op.companions, op)]
    return render(
        TEMPLATE,
        provenance=provenance(TEMPLATE),
        targets=TARGETS.values(),
        operations=ops,
        interface=interface(),
    )


def main(arguments: list[str]) -> int:
    """The exit code of a command line."""
    parser = argparse.ArgumentParser(
        prog="codegen.library", description="Lists targets and operations.", allow_abbrev=False
    )
    parser.add_argument("--api", required=True, help="comma list of apis")
    parser.add_argument("--out", required=True, type=Path, metavar="FILE", help="the C file")
    options = parser.parse_args(arguments)
    try:
        options.out.write_text(library_source(options.api), encoding="utf-8")
    except Refused as refused:
        print(f"codegen.library: {refused}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"codegen.library: cannot write {options.out}: {error.strerror}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
