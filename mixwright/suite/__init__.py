"""General suite: families of gradable requests that ship with the package, for whoever has no test set of all else."""
