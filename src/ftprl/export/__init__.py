"""Models for other programs: a scorer of one file in plain Python, and ONNX."""

from ftprl.export.onnx import write_onnx
from ftprl.export.python import python_source, write_python

__all__ = ["python_source", "write_onnx", "write_python"]
