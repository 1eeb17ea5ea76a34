"""Estimates: intervals, dependence on the prompt, chance level, states of cells, words. One of each for all stages."""
