"""Demo on a pretrained model: it learns one task, forgets others, the gate says so, and a plan is tried against that."""
