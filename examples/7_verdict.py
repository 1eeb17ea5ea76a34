"""Verdict: what was learnt and what was damaged, as one page; reads files only, no torch."""

from _shared import RUN

from mixwright.api import verdict
from mixwright.records import Claim
from mixwright.run.folder import read_list

page = verdict(RUN)
for claim in read_list(RUN.claims, Claim):
    where = f"{claim.task}@{claim.level:g}" if claim.level is not None else claim.task
    print(f"{claim.arm} {where}: {claim.kind}, {claim.before:.2f} -> {claim.after:.2f} ({claim.evidence})")
print(f"verdict: {page}")
