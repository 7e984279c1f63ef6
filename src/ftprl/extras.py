"""Imports of optional packages: if one is missing, the error is one line with the extra that installs it."""

from __future__ import annotations

from types import TracebackType
from typing import final

from ftprl.errors import MissingExtra

# Package: its purpose, and the extra of ftprl that installs it.
_EXTRAS = {
    "clarabel": ("solving a convex program", "games"),
    "matplotlib": ("drawing", "plot"),
    "onnx": ("export to ONNX", "onnx"),
    "piqp": ("solving a quadratic program", "games"),
    "ray": ("engine=ray", "ray"),
    "scipy": ("optimization", "games"),
    "sklearn": ("this estimator", "sklearn"),
}
_INSTALLED_AS = {"sklearn": "scikit-learn"}
_OPTIONS = {"ray": ("engine",)}


@final
class _ExtraImports:
    """A context manager that raises MissingExtra if an import in its block finds no package; other errors pass."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, ModuleNotFoundError):
            return
        package = (error.name or "").partition(".")[0]
        if package in _EXTRAS:
            purpose, extra = _EXTRAS[package]
            raise MissingExtra(
                f"{purpose} needs {_INSTALLED_AS.get(package, package)}; pip install 'ftprl[{extra}]'",
                option=_OPTIONS.get(package, ()),
            ) from None


extra_imports = _ExtraImports()
"""The block of an optional import: `with extra_imports: import clarabel`."""
