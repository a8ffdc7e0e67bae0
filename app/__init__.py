"""Inglenook: a private, offline chat with language models in a desktop window."""

__version__ = "0.1.0"
