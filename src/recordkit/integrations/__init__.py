"""Integrations with frameworks: one module for each, which imports its framework and which no other module imports.

They are available as `rk.torch`, `rk.jax`, `rk.tensorflow` and `rk.huggingface`, and imported when they are first used.
"""
