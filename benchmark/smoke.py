# SPDX-License-Identifier: MIT
"""Whether fmha_fwd still runs at its speed on this CPU: at least half of the peak that a probe measures
beside it.

The kernels reach 80 to 90 % of the peak. Whatever else a machine does can only lower a figure, so one good
turn of many is enough, and where the probe itself does not come to rest nothing is judged (exit code 77).
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from fmha_fwd import Bench, Tessera
from shapes import Figures, square

SHAPE = square(1, 2, 2, 1024, 128)
LEAST, STEADY = 0.5, 0.8
SECONDS = 60.0


def best_share(bench: Bench, prec: str) -> float | None:
    """The best turn's share of the peak, tried until it is enough; None where the probe was too unsteady."""
    tessera = Tessera(bench.options.build)
    tessera.prepare(SHAPE, prec, 1)
    probes, shares = [], []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end:
        probe = bench.probe(1)
        share = Figures(SHAPE, prec, (tessera.time(3),)).share(probe)
        probes.append(max(probe.get("fma_avx512", 0.0), probe["fma_avx2"]))
        shares.append(share)
        if share >= LEAST and len(shares) > 1:
            return max(shares)
    steady = [rate for rate in probes if rate > STEADY * max(probes)]
    return max(shares) if len(steady) > len(probes) / 2 else None


def main() -> int:
    """0: fast enough; 1: not; 77: the machine was too busy to tell."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--build", type=Path, required=True)
    parser.set_defaults(rivals="", env=[])
    bench = Bench(parser.parse_args())
    worst = 0
    for prec in ("fp32", "bf16"):
        share = best_share(bench, prec)
        if share is None:
            print(f"{prec}: the probe varies too much to tell")
            worst = worst or 77
        else:
            print(f"{prec}: {100 * share:.0f} % of the peak, at least {100 * LEAST:.0f} is asked")
            worst = 1 if share < LEAST else worst
    return worst


if __name__ == "__main__":
    sys.exit(main())
