"""MkDocs hooks: the examples become pages of the site, since MkDocs links to files below docs/ only."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

EXAMPLES = Path(__file__).parents[1] / "examples"


def on_files(files: Any, config: Any) -> Any:
    """Add one page per example, with its source."""
    for path in sorted(EXAMPLES.glob("*.py")):
        text = f"# {path.name}\n\n```python\n{path.read_text('utf-8')}```\n"
        files.append(File.generated(config, f"examples/{path.stem}.md", content=text))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Point links to ../examples/NAME.py at these pages."""
    for path in EXAMPLES.glob("*.py"):
        markdown = markdown.replace(f"(../examples/{path.name})", f"(examples/{path.stem}.md)")
    return markdown
