"""Training: the one SFT loop and the one GRPO loop of lab and studies, on tiny models, in bare torch."""
