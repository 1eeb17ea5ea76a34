"""One operator of Data-Juicer over `train.jsonl` of a folder, run by the Python of an environment that has it.

One process; MinHash over runs of three words with as many permutations and bands as datatrove's. Prints one line of JSON:
CPU seconds since the imports, peak memory in MB, and the numbers of the rows that it leaves out.

    PYTHON datajuicer_arm.py exact|near FOLDER
"""

import json
import os
import resource
import sys
import tempfile

from data_juicer.core.data import NestedDataset  # pyright: ignore[reportMissingImports]
from data_juicer.ops import deduplicator  # pyright: ignore[reportMissingImports]
from datasets import load_dataset


def main(operator: str, folder: str) -> None:
    """Run it and print what it took."""
    before = sum(os.times()[:4])
    with tempfile.TemporaryDirectory() as cache:
        loaded = load_dataset("json", data_files=f"{folder}/train.jsonl", split="train", cache_dir=cache)
        if operator == "exact":
            chosen = deduplicator.DocumentDeduplicator(lowercase=True, text_key="prompt")
        else:
            chosen = deduplicator.DocumentMinhashDeduplicator(
                window_size=3, num_permutations=112, num_bands=14, num_rows_per_band=8, text_key="prompt"
            )
        kept, _ = chosen.process(NestedDataset(loaded).map(chosen.compute_hash))
        kept_names = set(kept["id"])
        found = [number for number, name in enumerate(loaded["id"]) if name not in kept_names]
    seconds = sum(os.times()[:4]) - before
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "memory": memory, "found": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
