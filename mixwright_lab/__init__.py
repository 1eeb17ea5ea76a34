"""Laboratory: claims tried on tiny models, generated tasks, the demo. It imports mixwright, never the other way."""
