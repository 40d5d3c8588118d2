"""Benchmarks with bars and run records: ``python -m benchmarks [name ...]`` or ``make bench``.

A benchmark is a module of this package with ``run()``, which measures and returns numbers by name
(a number, or a spread of ``median``, ``min`` and ``max``), and ``BARS``, the most that some of them
may be. ``DATA`` says in a sentence on what it measures. The runner judges and writes the record.
"""
