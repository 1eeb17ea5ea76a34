"""Command of the study of judgements; worker processes import the package, not this file."""

from mixwright_lab.studies import judgement
from mixwright_lab.studies.report import run

run("judgement", judgement.__doc__, judgement.measure)
