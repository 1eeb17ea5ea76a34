"""Steps of worked solutions, code and tool calls: read from completions, worked out, and compared with what is stated."""
