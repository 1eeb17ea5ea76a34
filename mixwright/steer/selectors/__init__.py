"""Which item of a task is drawn next: one file, one selector."""
