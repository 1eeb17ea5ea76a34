"""The model being taught enters here: load it, build a tiny one, sample from it, read its probabilities."""
