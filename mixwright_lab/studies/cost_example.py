"""GPU hours of each verb by the formulas of docs/cost.md, for sizes of one's own.

Nothing is run. Seconds of the verbs without a model are the slopes that `cost_model` left; operations are 2 per parameter
and token forward and 6 with the backward pass, and attention. The utilisations are what `gpu_costs` measured; the seconds of
a pass are an assumption. All are options.

    python -m mixwright_lab.studies.cost_example --parameters 7e9 --rows 1e6 --gpus 64
"""

from __future__ import annotations

import argparse
import json
import math
from dataclasses import dataclass, fields

from mixwright.measure.bases import ITEMS_PER_PART
from mixwright.scan.table import SHARD_ROWS
from mixwright_lab.studies.report import RESULTS

RUN = "one training run over all rows"


@dataclass(frozen=True, slots=True)
class Setup:
    """What is run, and on what."""

    parameters: float = 7e9
    layers: float = 32
    width: float = 4096
    rows: float = 1e6
    tokens: float = 600
    """Of a row."""
    items: float = 2000
    """Held-out items."""
    samples: float = 8
    """Sampled completions of an item, beside the greedy one."""
    room: float = 256
    """Tokens of a completion."""
    batch: float = 47
    """Completions that are written together: a sixteenth of 80 GiB by default, with 8 key-value heads of 128."""
    steps: float = 500
    """Training steps of a branch."""
    prompts: float = 64
    """Rows of a step."""
    arms: float = 3
    """Arms that are trained, beside the model that is not."""
    seeds: float = 5
    gpus: float = 64
    peak: float = 989e12
    """Operations per second of a GPU: H100 SXM, bfloat16, dense."""
    utilisation: float = 0.376
    """Of training 7.4 billion parameters on an H200, 16 rows of 500 tokens a step (`gpu_costs`)."""
    reading: float = 0.285
    """Utilisation of reading, the same model and device, while another piece ran beside (`gpu_costs`)."""
    pass_seconds: float = 0.03
    """Of writing one token for a batch: 23 to 34 ms for 30 layers on an H200 (docs/promises.md)."""
    scan_passes: float = 2.15
    """Forward passes of the default columns: SmolLM2, results/studies/real_speed.json."""
    sketch_passes: float = 3.0
    """Forward passes of a sketch, as a plain forward and backward pass; SmolLM2 took 0.6 of that."""


def gpu_hours(given: Setup) -> dict[str, tuple[float, float]]:
    """Verb -> (GPU hours, hours of the clock with so many GPUs, of which a job has one)."""
    forward = 2 * (given.parameters + 2 * given.layers * given.width * given.tokens)
    per_hour, read_per_hour = 3600 * given.peak * given.utilisation, 3600 * given.peak * given.reading
    whole = given.rows * given.tokens * forward
    read = given.items * given.tokens * forward / read_per_hour
    groups = max(1, given.batch // given.samples)  # the samples of a prompt stay together, and greedy answers apart
    batches = math.ceil(given.items / given.batch) + math.ceil(given.items / groups)
    writing = batches * given.room * given.pass_seconds / 3600
    measuring = writing + read
    writers = max(1, min(given.gpus, given.items // ITEMS_PER_PART))
    training = given.steps * given.prompts * given.tokens * 3 * forward / per_hour
    trained, frozen = given.arms * given.seeds, given.seeds
    hours = trained * training + (trained + frozen) * measuring
    waves = math.ceil((trained + frozen) / given.gpus)
    shards = math.ceil(given.rows / SHARD_ROWS)
    busiest = math.ceil(shards / given.gpus) / shards
    read_once, learnt_once = whole / read_per_hour, 3 * whole / per_hour
    return {
        RUN: (learnt_once, learnt_once / given.gpus),
        "measure": (measuring, writing / writers + read),
        "scan, default columns": (given.scan_passes * read_once, given.scan_passes * read_once * busiest),
        "scan, sketches": (given.sketch_passes * whole / per_hour, given.sketch_passes * whole / per_hour * busiest),
        "a branch: training": (training, training),
        "a branch: measuring": (measuring, measuring),
        "trial": (hours, waves * (training + measuring)),
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for one in fields(Setup):
        parser.add_argument(f"--{one.name.replace('_', '-')}", type=float, default=one.default)
    given = Setup(**vars(parser.parse_args()))
    hours = gpu_hours(given)
    whole = hours[RUN][0]
    print(f"{'':32}{'GPU hours':>12}{'hours':>10}{'of one run':>12}")
    for name, (spent, clock) in hours.items():
        print(f"{name:32}{spent:12.2f}{clock:10.2f}{spent / whole:12.1%}")
    study = json.loads((RESULTS / "cost_model.json").read_text(encoding="utf-8"))
    slopes = study["figures"]
    audit = {name: slopes[name]["intercept"] + slopes[name]["slope"] * given.rows for name in ("audit", "audit, long rows")}
    print("audit, CPU hours of one core: " + ", ".join(f"{name} {value / 3600:.2f}" for name, value in audit.items()))
    *_, sketched = [row for row in study["rows"] if row.get("case") == "scan, sketches"]
    print(f"table of sketches: {given.rows * sketched['bytes'] / sketched['rows'] / 1e9:.1f} GB")


if __name__ == "__main__":
    main()
