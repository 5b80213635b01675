"""Takes every picture of the widget in docs/images, from real scores of the embedded model.

python -m docs.pictures                     all of them
python -m docs.pictures explorer live       those
python -m docs.pictures --to /tmp/look all-sizes    every size, to be looked at
"""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks.browser import chromium
from docs.pictures import charts, explorer, live, sizes, views

IMAGES = Path(__file__).parents[1] / "images"
KINDS = {
    "explorer": explorer.shoot,
    "views": views.shoot,
    "sizes": sizes.shoot,
    "charts": charts.shoot,
    "live": live.shoot,
}
TO_LOOK_AT = {"all-sizes": sizes.shoot_all}
"""Pictures that no page shows: taken only when they are named."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m docs.pictures", description="Take the pictures in docs/images."
    )
    parser.add_argument("kinds", nargs="*", default=list(KINDS), help=", ".join(KINDS))
    parser.add_argument("--to", type=Path, default=IMAGES, help="the folder that they go to")
    asked = parser.parse_args()
    kinds = {**KINDS, **TO_LOOK_AT}
    if unknown := [kind for kind in asked.kinds if kind not in kinds]:
        parser.error(f"there is no {', '.join(unknown)}; there are {', '.join(kinds)}.")
    with chromium() as browser:
        for kind in asked.kinds:
            for path in kinds[kind](browser, asked.to):
                print(f"{path.name}, {path.stat().st_size // 1024} KB", flush=True)


if __name__ == "__main__":
    main()
