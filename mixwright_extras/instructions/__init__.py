"""Instructions in prompts, and whether answers follow them."""
