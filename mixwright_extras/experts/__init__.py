"""Models made of others: mixed, routed, dialled, or trained in singular values."""
