"""Miners that read a scan: what they lack of it is made before they begin."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from mixwright.extend import CheckedRun, Corpus, InputError, Miner, RunFolder, TrainRows, Workers, base_name
from mixwright_extras.scan.table import Scan


class ScanMiner(Miner):
    """Parent of the miners whose columns are those of a scan."""

    OPTIONAL_COLUMNS: ClassVar[tuple[str, ...]] = ()
    """Columns that are read if the scan has them."""

    def prepare(self, run: CheckedRun, workers: Workers, base: str, say: Callable[[str], None]) -> None:
        """Scan the columns that are missing."""
        from mixwright_extras.scan.stage import scan_bases  # torch

        if missing := self._missing_columns(len(run.corpus), run.folder, base):
            scan_bases(run, workers, columns=missing, say=say)

    def read_rows(self, corpus: Corpus, folder: RunFolder, base: str) -> TrainRows:
        """Return the training rows that were scanned. Raises InputError for a scan of other rows, or of none of these."""
        scan = Scan(folder, base_name(base))
        if scan.key["corpus"] != corpus.digest():
            raise InputError(
                "a scan of this corpus", "a scan of other rows", "Run `mixwright scan` again.", file=scan.folder
            )
        table = corpus.table.select(["id", "task", "split"]).to_pydict()
        places = [n for n, (name, split) in enumerate(zip(table["id"], table["split"], strict=True)) if split == "train"]
        places = [place for place in places if table["id"][place] in scan.places]
        if not places:
            raise InputError("training rows that were scanned", "none", "Run `mixwright scan` on this corpus.")
        ids = tuple(table["id"][place] for place in places)
        names = [*self.COLUMNS, *(name for name in self.OPTIONAL_COLUMNS if name in scan.names)]
        tasks = np.array([table["task"][place] for place in places], dtype=object).astype(str)
        return TrainRows(ids, tasks, np.array(places), scan.rows(ids, names), scan.key)

    def _missing_columns(self, rows: int, folder: RunFolder, base: str) -> list[str]:
        """Columns that the scan lacks; without a whole scan, those to begin one with.

        Raises:
            InputError: columns are missing from a scan of a sample: a scan of all rows would replace it.
        """
        try:
            scan = Scan(folder, base_name(base))
        except InputError:  # none, or one that was interrupted and goes on
            return list(self.COLUMNS) or ["lengths"]
        missing = [name for name in self.COLUMNS if name not in scan.names]
        if missing and scan.key["rows"] < rows:
            remedy = f"Add them: mixwright scan --columns {','.join(missing)}, with the same --sample as before."
            got = "a scan without them"
            raise InputError(f"the columns {', '.join(missing)} in the scan", got, remedy, file=scan.folder)
        return missing
