"""The checker behind shape annotations in tests: beartype, with an int accepted where a float is expected (PEP 484)."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
