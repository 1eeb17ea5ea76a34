"""Measurements that back what is claimed: `python -m benchmarks.NAME [--quick]`; results of full runs are in `results/`."""
