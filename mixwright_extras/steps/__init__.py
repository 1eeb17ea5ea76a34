"""Wrong steps of solutions, and the rows that they stand in."""
