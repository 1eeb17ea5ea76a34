"""Plans: weights, band and guards of a run; one file, one planner. Pure: records go in, a `Plan` comes out."""
