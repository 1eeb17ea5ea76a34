"""General suite: families of gradable requests that ship with the package, for whoever brings no test set of everything else."""
