"""The checker behind shape annotations in tests: beartype, with an int accepted where a float is expected (PEP 484).

It looks at a random item of each list; its chance is its own, so that the random state of what is tested stays as it was.
"""

import random

from beartype import BeartypeConf, beartype
from beartype._check.code import codemain

codemain.getrandbits = random.Random(0).getrandbits
check = beartype(conf=BeartypeConf(is_pep484_tower=True))
