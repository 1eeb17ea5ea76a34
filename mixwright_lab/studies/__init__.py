"""Studies: each file or folder is one measurement of the product, `python -m mixwright_lab.studies.NAME [--quick]`.

Full runs write `mixwright_lab/results/studies/NAME.json`. Every study computes with one thread, unless the environment says
otherwise; that is set here, because here is before torch.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
