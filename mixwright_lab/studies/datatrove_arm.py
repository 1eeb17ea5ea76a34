"""One operator of datatrove over `train.jsonl` of a folder, run by the Python of an environment that has datatrove alone.

Settings are datatrove's own but for what makes the operators look for what our checks look for: MinHash over runs of three
words, numbers not folded, and decontamination by n-grams of prompts, too. Prints one line of JSON: CPU seconds since the
imports, processes that it started included, peak memory in MB, and the numbers of the rows found.

    PYTHON datatrove_arm.py exact|near|decontamination FOLDER
"""

import json
import os
import resource
import sys
import tempfile
from pathlib import Path

import numpy as np
from datatrove.data import Document  # pyright: ignore[reportMissingImports]
from datatrove.pipeline.decont import n_grams  # pyright: ignore[reportMissingImports]
from datatrove.pipeline.dedup import exact_dedup, minhash  # pyright: ignore[reportMissingImports]
from datatrove.pipeline.readers import JsonlReader  # pyright: ignore[reportMissingImports]
from datatrove.utils.text import TextNormConfig  # pyright: ignore[reportMissingImports]


def read(folder: Path, name: str = "train.jsonl", *, with_answer: bool = False):
    """Documents of the rows of a file, numbered in order."""

    def adapt(_, data, path, id_in_file):
        text = f"{data['prompt']}\n{data['answer']}" if with_answer else data["prompt"]
        return {"text": text, "id": data["id"], "metadata": {"answer": data["answer"], "number": id_in_file}}

    return JsonlReader(str(folder), glob_pattern=name, adapter=adapt, add_file_path=False).run()


def content(document: Document) -> str:
    """What exact copies have in common."""
    return document.text


def exact(folder: Path, scratch: str) -> list[int]:
    """Rows that repeat an earlier prompt and answer."""
    config = exact_dedup.ExactDedupConfig(content)
    exact_dedup.ExactDedupSignature(f"{scratch}/sig", config).run(read(folder, with_answer=True))
    exact_dedup.ExactFindDedups(f"{scratch}/sig", f"{scratch}/dup", config).run()
    files = Path(f"{scratch}/dup").rglob("*.c4_dup")
    return sorted(np.concatenate([np.fromfile(file, "<u4") for file in files]).tolist())


def near(folder: Path, scratch: str) -> list[int]:
    """Rows of each cluster but one."""
    config = minhash.MinhashConfig(n_grams=3, norm_config=TextNormConfig(norm_numbers=False))
    minhash.MinhashDedupSignature(f"{scratch}/sig", config).run(read(folder))
    for bucket in range(config.num_buckets):
        minhash.MinhashDedupBuckets(f"{scratch}/sig", f"{scratch}/dup", config=config).run(None, bucket, config.num_buckets)
    minhash.MinhashDedupCluster(f"{scratch}/dup", f"{scratch}/rm", config=config, save_cluster_id=True).run()
    return np.fromfile(f"{scratch}/rm/000000.clusters", "<u4").tolist()


def decontamination(folder: Path, scratch: str) -> list[int]:
    """Rows that share a run of twelve words with a held-out item."""
    config = n_grams.NGramsDecontConfig(find_query_ngrams=True, norm_config=TextNormConfig(norm_numbers=False))
    n_grams.NGramsDecontIndexer._requires_dependencies = []  # lighteval, which is for its own tasks only
    indexer, hashes = n_grams.NGramsDecontIndexer(f"{scratch}/index", config=config), set[int]()
    for document in read(folder, "eval.jsonl"):
        hashes.update(indexer.compute_hashes(document.metadata["answer"], document.text))
    Path(f"{scratch}/index").mkdir(exist_ok=True)
    np.array(list(hashes), config.hash_config.np_descr).tofile(f"{scratch}/index/eval.index.hashes")
    decide = n_grams.NGramsDecontFilter(f"{scratch}/index", config)
    return [document.metadata["number"] for document in read(folder) if decide.filter(document) is not True]


def main(operator: str, folder: str) -> None:
    """Run it and print what it took."""
    before = sum(os.times()[:4])
    with tempfile.TemporaryDirectory() as scratch:
        found = {"exact": exact, "near": near, "decontamination": decontamination}[operator](Path(folder), scratch)
    seconds = sum(os.times()[:4]) - before
    memory = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)) / 1024
    print(json.dumps({"seconds": seconds, "memory": memory, "found": found}))


if __name__ == "__main__":
    main(*sys.argv[1:])
