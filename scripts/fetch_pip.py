# SPDX-License-Identifier: MIT
"""Fetches the pip wheel that requirements-pip.txt pins, for a Python without ensurepip; prints its path."""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import sys
import urllib.parse
import urllib.request
from pathlib import Path


def main() -> int:
    """Fetches, checks, prints."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("into", type=Path, help="folder that takes the wheel")
    parser.add_argument("--wheels", type=Path, help="folder to take it from instead of the index")
    options = parser.parse_args()

    pins = Path(__file__).with_name("requirements-pip.txt").read_text()
    pinned = re.search(r"pip==(\S+)", pins)
    assert pinned
    name = f"pip-{pinned[1]}-py3-none-any.whl"
    wheel = options.into / name
    if options.wheels:
        shutil.copy(options.wheels / name, wheel)
    else:
        index = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/") + "/pip/"
        try:
            download(index, name, wheel)
        except OSError as error:
            sys.exit(f"{index}: {error}")

    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    if digest not in pins:
        wheel.unlink()
        sys.exit(f"{name}: sha256 {digest} is not one of requirements-pip.txt")
    print(wheel)
    return 0


def download(index: str, name: str, wheel: Path) -> None:
    """Looks the wheel up in an index as pip does. urllib honours http_proxy, https_proxy and no_proxy."""
    certificates = os.environ.get("PIP_CERT")
    if certificates:
        os.environ.setdefault("SSL_CERT_FILE", certificates)
    with urllib.request.urlopen(index, timeout=60) as page:
        link = re.search(rf'href="([^"]*{re.escape(name)}[^"]*)"', page.read().decode())
    if not link:
        sys.exit(f"{index} has no {name}")
    with urllib.request.urlopen(urllib.parse.urljoin(index, link[1]), timeout=60) as source:
        wheel.write_bytes(source.read())


if __name__ == "__main__":
    sys.exit(main())
