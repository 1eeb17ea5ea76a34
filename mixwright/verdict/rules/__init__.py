"""Rules of the verdict: claims, the gate, the recommendation and what they rest on. Pure, or files only."""
