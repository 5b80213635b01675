"""Benchmarks: ratios, both sides measured in the same run."""
