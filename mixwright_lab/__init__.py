"""The laboratory: claims tried on tiny models, generated tasks, the demo. Imports mixwright, never the other way."""
