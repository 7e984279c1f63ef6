"""Fuzz every parser, the learner, all that reads models and receipts, and threads under AddressSanitizer and UBSan.

    python fuzz/run.py [--seconds N] [--seed S] [--target NAME ...] [--plain]

Builds the native driver (g++ is enough) and a sanitized extension, runs each target for its share of the time, and
prints a table. An input that finds something is kept in fuzz/crashes/; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NATIVE, CORE, CORPUS = ROOT / "fuzz" / "native", ROOT / "src" / "core", ROOT / "fuzz" / "corpus"
CRASHES, BUILD = ROOT / "fuzz" / "crashes", ROOT / "build" / "fuzz"
NATIVE_TARGETS = ("vw", "libsvm", "table", "jsonl", "number", "label", "hash", "words", "learning")
PYTHON_TARGETS = ("files", "columns", "streams", "model", "checkpoint", "receipt", "threads")

# GCC 12 takes some numbers for uninitialised that are not.
COMMON = ["-std=c++17", "-Wall", "-Wextra", "-Wno-maybe-uninitialized", "-ffp-contract=off", f"-I{CORE}", f"-I{NATIVE}"]
MODES = {
    "sanitized": ["-g", "-O1", "-fno-omit-frame-pointer", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"],
    "release": ["-O3", "-DNDEBUG"],  # what a release is built with: the bits of the kernels that are shipped
    "quick": ["-O0"],  # for the tests: soon compiled, and the laws are checked all the same
}
COVERED = ["-fsanitize-coverage=trace-pc"]
KERNEL = ["-fno-math-errno", "-fno-trapping-math", "-Wno-psabi"]  # as in CMakeLists.txt


def log(text: str) -> None:
    """Progress."""
    print(text, file=sys.stderr, flush=True)


# ---- building ----


def is_x86() -> bool:
    """Whether AVX2 is compiled."""
    return platform.machine().lower() in ("x86_64", "amd64")


def _units() -> list[tuple[Path, list[str]]]:
    """Each file with the options of its own."""
    own: list[tuple[Path, list[str]]] = [(NATIVE / f"{name}.cpp", []) for name in ("main", "mutate")]
    own.append((NATIVE / "coverage.cpp", ["-O2", "-fno-sanitize=all"]))
    tested = [(NATIVE / f"{name}.cpp", COVERED) for name in ("readers", "scalars", "learning")]
    core = [file for part in ("learn", "readers", "support") for file in sorted((CORE / part).glob("*.cpp"))]
    options = {"loops_portable": KERNEL, "losses": KERNEL, "loops_avx2": [*KERNEL, "-mavx2"]}
    if not is_x86():
        core.remove(CORE / "learn" / "loops_avx2.cpp")
    tested += [(file, [*COVERED, *options.get(file.stem, [])]) for file in core]
    return tested + own


def _headers() -> bytes:
    files = [*CORE.rglob("*.hpp"), *CORE.rglob("*.inl"), *NATIVE.glob("*.hpp")]
    return b"".join(path.read_bytes() for path in sorted(files))


def build_driver(mode: str) -> Path:
    """Compile what changed; objects are named by what they are made of."""
    compiler = os.environ.get("CXX", "g++")
    if shutil.which(compiler) is None:
        sys.exit(f"{compiler} is not there; install g++ or name another compiler with CXX")
    folder = BUILD / mode
    folder.mkdir(parents=True, exist_ok=True)
    options, headers = COMMON + MODES[mode], _headers()
    units = _units()
    if is_x86():
        options = [*options, "-DFTPRL_X86"]

    def compiled(unit: tuple[Path, list[str]]) -> Path:
        source, own = unit
        words = [compiler, *options, *(w for w in own if mode == "sanitized" or w not in COVERED)]
        made_of = hashlib.sha256(" ".join(words).encode() + source.read_bytes() + headers).hexdigest()[:16]
        target = folder / f"{source.stem}-{made_of}.o"
        if not target.exists():
            part = target.with_suffix(f".{os.getpid()}")  # another run may build the same
            subprocess.run([*words, "-c", str(source), "-o", str(part)], check=True)
            part.replace(target)
        return target

    with ThreadPoolExecutor(os.cpu_count() or 1) as pool:
        objects = list(pool.map(compiled, units))
    driver = folder / ("driver-" + hashlib.sha256("".join(map(str, objects)).encode()).hexdigest()[:16])
    if not driver.exists():
        part = driver.with_suffix(f".{os.getpid()}")
        linked = [compiler, *MODES[mode], "-pthread", *map(str, objects), "-o", str(part)]
        subprocess.run(linked, check=True)
        part.replace(driver)
    return driver


def build_extension() -> tuple[Path | None, str]:
    """The package with a sanitized core in a folder of its own, or the reason why not."""
    core = [*CORE.rglob("*.?pp"), *CORE.rglob("*.inl")]
    sources = sorted([*core, *(ROOT / "src" / "ftprl").rglob("*.py"), ROOT / "CMakeLists.txt"])
    made_of = hashlib.sha256(sys.version.encode() + b"".join(path.read_bytes() for path in sources)).hexdigest()[:16]
    folder = BUILD / f"package-{made_of}"
    if folder.exists():
        return folder, ""
    part = BUILD / f"part-{os.getpid()}"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(part)]
    command += [
        "-Ccmake.define.FTPRL_SANITIZE=ON",
        "-Cinstall.strip=false",
        f"-Cbuild-dir={BUILD / 'cmake'}",
        str(ROOT),
    ]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        shutil.rmtree(part, ignore_errors=True)
        return None, f"the sanitized extension could not be built: {made.stderr.strip()[-400:]}"
    part.replace(folder)
    return folder, ""


def sanitizer_library() -> str | None:
    """The libraries that must be loaded before Python is; without that of C++ no exception of pyarrow could pass."""
    compiler = os.environ.get("CXX", "g++")

    def path(name: str) -> str:
        command = [compiler, f"-print-file-name={name}"]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    libraries = [path(name) for name in ("libasan.so", "libstdc++.so")]
    return ":".join(libraries) if all(Path(library).is_absolute() for library in libraries) else None


# ---- running ----


@dataclass(frozen=True)
class Result:
    """What a target did; `repeat_command` repeats a failure, and is empty without one."""

    target: str
    executions: int = 0
    seconds: float = 0.0
    repeat_command: str = ""


def _finished(target: str, run: subprocess.CompletedProcess[str], again: str) -> Result:
    if run.returncode != 0:
        log(run.stderr[-4000:])
        return Result(target, repeat_command=again)
    counts = json.loads(run.stdout.strip().splitlines()[-1])
    return Result(target, counts["executions"], counts["seconds"])


def run_native(driver: Path, target: str, seconds: float, seed: int) -> Result:
    """One target of the driver, in a process of its own."""
    before = set(CRASHES.iterdir())
    command = [str(driver), "--target", target, "--seconds", f"{seconds:g}", "--seed", str(seed)]
    command += ["--corpus", str(CORPUS), "--crashes", str(CRASHES)]
    run = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    kept = sorted(set(CRASHES.iterdir()) - before)
    again = f"{driver} --target {target} --seed {seed}"
    if kept:
        again = f"{driver} --target {target} --replay {kept[-1]} --choice {kept[-1].name.rpartition('-')[2]}"
    return _finished(target, run, again)


def run_python(package: Path | None, target: str, seconds: float, seed: int) -> Result:
    """One Python target; with a sanitized package under its library, every block of memory its own."""
    env = dict(os.environ)
    command = [sys.executable, str(ROOT / "fuzz" / "python_targets.py"), target, "--seed", str(seed)]
    prefix = ""
    if package is not None:
        # Python keeps some memory until it ends, which is no leak of the core; and it frees what others allocated.
        checks = "detect_leaks=0:abort_on_error=1:alloc_dealloc_mismatch=0"
        own = {"LD_PRELOAD": sanitizer_library() or "", "ASAN_OPTIONS": checks, "PYTHONMALLOC": "malloc"}
        env |= own | {"UBSAN_OPTIONS": "print_stacktrace=1"}
        command += ["--package", str(package)]
        prefix = " ".join(f"{k}={v}" for k, v in own.items()) + " "
    timed = [*command, "--seconds", f"{seconds:g}", "--crashes", str(CRASHES)]
    before = set(CRASHES.iterdir())
    run = subprocess.run(timed, env=env, capture_output=True, text=True, errors="replace", check=False)
    kept = sorted(set(CRASHES.iterdir()) - before)
    again = prefix + " ".join(command)
    if kept:
        number = kept[-1].name.split("-")[2].split(".")[0]
        again += f" --first {number} --executions 1    # the input is also in {kept[-1]}"
    return _finished(target, run, again)


def table(results: list[Result], under: dict[str, str]) -> str:
    """Executions and seconds of each target."""
    lines = [f"{'target':<10} {'executions':>11} {'seconds':>8}  under"]
    for r in results:
        counts = f"{r.executions:>11,} {r.seconds:>8.1f}" if not r.repeat_command else f"{'FOUND':>11} {'':>8}"
        lines.append(f"{r.target:<10} {counts}  {under[r.target]}")
    whole = sum(r.executions for r in results), sum(r.seconds for r in results)
    return "\n".join([*lines, f"{'together':<10} {whole[0]:>11,} {whole[1]:>8.1f}"])


def main() -> int:
    parser = argparse.ArgumentParser(description="Fuzz the parsers, the learner and the model loader.")
    every = NATIVE_TARGETS + PYTHON_TARGETS
    parser.add_argument("--seconds", type=float, default=120.0, help="for all targets together, building not counted")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--target", nargs="+", choices=every, default=list(every), metavar="NAME", help=", ".join(every)
    )
    parser.add_argument("--plain", action="store_true", help="without sanitizers, optimised as a release is")
    options = parser.parse_args()
    CRASHES.mkdir(exist_ok=True)
    share, under = options.seconds / len(options.target), {}
    results: list[Result] = []
    start = time.monotonic()
    driver, package = None, None
    if set(options.target) & set(NATIVE_TARGETS):
        log("building the driver ...")
        driver = build_driver("release" if options.plain else "sanitized")
    python_under = "no sanitizer"
    if set(options.target) & set(PYTHON_TARGETS) and not options.plain:
        log("building the sanitized extension ...")
        package, why = build_extension() if sanitizer_library() else (None, "the compiler has no libasan.so")
        python_under = "ASan, UBSan" if package else "no sanitizer"
        if why:
            log(f"the Python targets run without sanitizers: {why}")
    log(f"built in {time.monotonic() - start:.0f} s; {share:g} s for each target, seed {options.seed}")
    for target in options.target:
        if target in NATIVE_TARGETS:
            assert driver is not None
            under[target] = "no sanitizer" if options.plain else "ASan, UBSan"
            results.append(run_native(driver, target, share, options.seed))
        else:
            under[target] = python_under
            results.append(run_python(package, target, share, options.seed))
        last = results[-1]
        log(
            f"{target}: "
            + (
                f"FOUND something; repeat it with\n  {last.repeat_command}"
                if last.repeat_command
                else f"{last.executions:,} executions"
            )
        )
    print(table(results, under))
    return 1 if any(r.repeat_command for r in results) else 0


if __name__ == "__main__":
    sys.exit(main())
