"""What one model answered: one table, whoever wrote it."""
