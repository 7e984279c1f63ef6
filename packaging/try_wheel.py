"""Train, predict, certify and verify with an installed package: what a wheel is tried with, without a compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> None:
    import ftprl

    command = Path(sys.executable).with_name("ftprl")
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for line in (
            "generate clicks --rows 5000 --seed 1 -o clicks.csv.gz",
            "train clicks.csv.gz --label click -o clicks.ftprl --receipt",
            "predict clicks.ftprl clicks.csv.gz -o probabilities.txt",
            "certify clicks.ftprl -o clicks.receipt",
            "verify clicks.receipt clicks.csv.gz --model clicks.ftprl",
        ):
            subprocess.run([command, *line.split()], check=True)
        assert len(Path("probabilities.txt").read_text().splitlines()) == 5000
    print(f"ftprl {ftprl.__version__} from {Path(ftprl.__file__).parent}: works")


if __name__ == "__main__":
    main()
