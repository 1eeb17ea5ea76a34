"""Canaries: fixed items of which a run is measured on the way, generated (GRPO) or read (SFT, DPO)."""
