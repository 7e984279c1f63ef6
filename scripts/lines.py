"""Print how large the project is: lines, files and the share of docstrings of each package, words of docs, options.

python scripts/lines.py           # the table
python scripts/lines.py --check   # fails where a limit is passed
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = (".py", ".pyi", ".cpp", ".hpp", ".inl")
LIMITS = {"lines of source": 81_000, "words of docs": 64_000, "options of train": 52}


@dataclass
class Size:
    """Size of one package; `documented` counts the lines of docstrings and comments."""

    files: int = 0
    lines: int = 0
    documented: int = 0

    def add(self, text: str, suffix: str) -> None:
        """Add one file."""
        self.files += 1
        self.lines += len(text.splitlines())
        self.documented += documented_in_python(text) if suffix.startswith(".py") else comments_in_cpp(text)

    def row(self, name: str) -> str:
        """Return the line of the table."""
        return f"{name:24} {self.files:6} {self.lines:8} {self.documented / max(self.lines, 1):10.1%}"


def documented_in_python(text: str) -> int:
    """Count the lines that are part of a docstring or only a comment."""
    lines = {number for number, line in enumerate(text.splitlines(), 1) if line.lstrip().startswith("#")}
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                lines |= set(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    return len(lines)


def comments_in_cpp(text: str) -> int:
    """Count the lines that are only a comment."""
    return len(re.findall(r"^\s*(?://|/\*|\*)", text, re.MULTILINE))


def packages() -> dict[str, Size]:
    """Return the size of each package of src; modules beside the packages of ftprl are counted together."""
    sizes: dict[str, Size] = {}
    for path in sorted((ROOT / "src").rglob("*")):
        if path.suffix in SOURCE:
            folders = path.relative_to(ROOT / "src").parts[:-1][:2]
            sizes.setdefault("/".join(folders), Size()).add(path.read_text("utf-8"), path.suffix)
    return sizes


def docs_words() -> int:
    """Count the words of the pages in docs."""
    return sum(len(page.read_text("utf-8").split()) for page in (ROOT / "docs").rglob("*.md"))


def train_options() -> int:
    """Count the options of `ftprl train` in docs/options.md, which a test compares with the command."""
    return len(re.findall(r"^\| `--", (ROOT / "docs" / "options.md").read_text("utf-8"), re.MULTILINE))


def measured(sizes: dict[str, Size]) -> dict[str, int]:
    """Return the numbers that have limits."""
    lines = sum(size.lines for size in sizes.values())
    return dict(zip(LIMITS, (lines, docs_words(), train_options()), strict=True))


def table(sizes: dict[str, Size]) -> str:
    """Return the table as text."""
    total = Size()
    for size in sizes.values():
        total.files, total.lines = total.files + size.files, total.lines + size.lines
        total.documented += size.documented
    rows = [f"{'package':24} {'files':>6} {'lines':>8} {'docstrings':>10}"]
    rows += [size.row(name) for name, size in sizes.items()]
    rows += [total.row("in all"), ""]
    rows += [f"{name}: {value:,} (at most {LIMITS[name]:,})" for name, value in measured(sizes).items()]
    return "\n".join(rows)


def passed_limits() -> list[str]:
    """Return one line for each limit that is passed."""
    found = measured(packages())
    return [f"{name}: {found[name]:,}, at most {limit:,}" for name, limit in LIMITS.items() if found[name] > limit]


def main(args: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="fail where a limit is passed")
    check = parser.parse_args(args).check
    print(table(packages()))
    passed = passed_limits() if check else []
    if passed:
        print("too much: " + "; ".join(passed), file=sys.stderr)
    return 1 if passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
