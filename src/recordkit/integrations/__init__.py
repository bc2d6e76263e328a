"""Integrations: bridges to frameworks, a module for each, which imports its framework and is imported by nothing else.

They are offered as `rk.torch`, `rk.jax`, `rk.tensorflow` and `rk.huggingface`, and imported when they are first used.
"""
