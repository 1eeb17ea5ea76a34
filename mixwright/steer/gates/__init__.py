"""Gates that decide which groups may change the weights: one file, one gate."""
