"""Mixtures, weights over tasks that move while the run trains: one file, one mixture."""
