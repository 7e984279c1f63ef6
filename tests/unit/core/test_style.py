"""The style of the C++ sources: clang-format, the length of lines, and clang-tidy."""

import subprocess
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CORE = ROOT / "src" / "core"
SOURCES = sorted(
    path
    for folder in (CORE, ROOT / "fuzz" / "native")
    for path in folder.rglob("*")
    if path.suffix in (".cpp", ".hpp", ".inl")
)
SCRIPTS = Path(sysconfig.get_path("scripts"))


def assert_succeeds(*command: str | Path) -> None:
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, f"{run.stdout}\n{run.stderr}"


def test_sources_are_formatted() -> None:
    assert len(SOURCES) > 40
    assert_succeeds(SCRIPTS / "clang-format", "--dry-run", "-Werror", *SOURCES)


def test_no_line_is_longer_than_120() -> None:
    lines = [(path, n, line) for path in SOURCES for n, line in enumerate(path.read_text().splitlines(), 1)]
    assert [f"{path}:{n}" for path, n, line in lines if len(line) > 120] == []


@pytest.mark.slow
@pytest.mark.parametrize("path", sorted(CORE.rglob("*.cpp")), ids=lambda path: str(path.relative_to(CORE)))
def test_clang_tidy(path: Path) -> None:
    """Headers are checked with the files that include them. The analysis takes up to a minute or two for a file."""
    nanobind = pytest.importorskip("nanobind")
    headers = ["-isystem", nanobind.include_dir(), "-isystem", sysconfig.get_path("include")]
    own = ["-mavx2", "-mbmi", "-mpopcnt"] if path.stem.endswith("_avx2") else []
    compiler = ["-std=c++17", f"-I{CORE}", "-DFTPRL_X86", *own, *headers]
    assert_succeeds(SCRIPTS / "clang-tidy", "--quiet", path, "--", *compiler)
