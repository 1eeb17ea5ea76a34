"""Adapters: one file, one choice of which parameters of a model are trained and in what form they are kept."""
