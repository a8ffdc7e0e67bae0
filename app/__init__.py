"""Inglenook: a private, offline chat with language models in a desktop window."""

import os

__version__ = "0.1.0"

# ONNX Runtime 1.31 and later gather usage figures under a device id, and send them, unless this is
# set before it is imported. What is done here concerns nobody else.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"
