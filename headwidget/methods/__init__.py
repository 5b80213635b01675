"""The scoring methods: a file each, which ``scoring.registry`` finds by its name.

Larger methods have parts in further files: gating in ``gate_fits``, probe in
``probe_classifier`` and ``probe_report``, relations in ``extremes`` and ``word_maps``.
"""
