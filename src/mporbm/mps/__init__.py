"""Layers in matrix product state form: the machine, its learning and its estimator."""
