"""Rules that spend rollouts in other ways than ours, on the GRPO loop of the lab, which drives our engine too."""
