"""``make models``: examine every family and write the table in docs/models.md."""

from __future__ import annotations

import logging
import sys
import warnings
from multiprocessing import get_context
from pathlib import Path

from tests.support import sixteen_bit

PAGE = Path(__file__).parents[2] / "docs" / "models.md"


def main() -> int:
    sixteen_bit.limit_where_it_does_not_work()  # before torch is imported
    import transformers

    from tests.support import classifier_families, every_family, family_table, lens

    sections, wrong = [f"transformers {transformers.__version__}", ""], []
    with get_context("spawn").Pool(2, _quiet) as pool:
        mappings = {**every_family.MAPPINGS, **classifier_families.MAPPINGS}
        for kind, mapping in mappings.items():
            asked = [(family, kind) for family in sorted(mapping)]
            of_tokens = kind in every_family.MAPPINGS
            examine = family_table.examine if of_tokens else classifier_families.examine
            rows = pool.starmap(examine, asked, chunksize=4)
            wrong += [row for row in rows if row.outcome == "wrong"]
            if sum(row.outcome == "not built" for row in rows) > len(rows) / 2:
                print(f"{kind}: most families are not built ({rows[0].text}); nothing is written")
                return 1
            sections += [family_table.section(kind, rows), ""]
        causal = sorted(every_family.MAPPINGS["causal"])
        peer = dict(zip(causal, pool.map(lens.verdict, causal, chunksize=4)))
        sections += [family_table.peer_section(peer), ""]
    before, _, rest = PAGE.read_text().partition(family_table.BEGIN)
    _, _, after = rest.partition(family_table.END)
    made = "\n".join([family_table.BEGIN, "", *sections, family_table.END])
    PAGE.write_text(before + made + after)
    print("\n".join(f"WRONG: {row.family}: {row.text}" for row in wrong) or f"{PAGE.name} written")
    return len(wrong)


def _quiet() -> None:
    import torch

    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)


if __name__ == "__main__":
    sys.exit(main())
