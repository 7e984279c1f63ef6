"""Write the tables of docs/options.md from the table of options.

python scripts/options_page.py
"""

from __future__ import annotations

from pathlib import Path

from ftprl.losses import LOSSES
from ftprl.options import BY_NAME, COMMAND, GROUPS, Option

PAGE = Path(__file__).resolve().parents[1] / "docs" / "options.md"
FIRST = "## Data\n"  # what stands above is written by hand


def described(option: Option) -> str:
    """Return the help of an option; that of a switch as it is on the command line, and what it is in Python."""
    if option.switch_help is None:
        return option.line().replace(BY_NAME["loss"].line(), option.line(lambda _: ", ".join(LOSSES)))
    if not option.is_switch:
        return option.switch_help
    return f"{option.switch_help} (`{option.name}={not option.typed.startswith('--no-')}`)"


def tables() -> str:
    """Return a table of options for each group."""
    lines: list[str] = []
    for group in GROUPS:
        lines += [f"## {group.capitalize()}", "", "| command line | Python | |", "|---|---|---|"]
        for option in (option for option in BY_NAME.values() if option.group == group):
            typed = f"`{(option.switch or option.typed).replace('/', '` `')}`" if option in COMMAND else ""
            text = described(option).replace("|", "\\|")
            lines.append(f"| {typed} | `{option.name}=` | {text} |")
        lines.append("")
    return "\n".join(lines)


if __name__ == "__main__":
    text = PAGE.read_text()
    PAGE.write_text(text[: text.index(FIRST)] + tables())
