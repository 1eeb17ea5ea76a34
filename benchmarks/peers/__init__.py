"""Rules that spend rollouts in other ways than ours, on one small bare GRPO loop that drives our engine too."""
