"""Rules of the verdict: cells, the gate, the recommendation of a trial, and next steps. Pure, or files only."""
