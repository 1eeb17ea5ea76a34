"""How much of what, in which band, with which guards: one file, one planner. Pure; reads records, returns a `Plan`."""
