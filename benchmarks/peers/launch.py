"""Start one process, wait for it, and print what it took: a small process, since Linux counts the memory of whoever
starts a process as a peak of the new one.

    python -I -S launch.py STDOUT STDERR PROGRAM ARGUMENT...
"""

import os
import sys
import time


def main() -> None:
    stdout, stderr, *command = sys.argv[1:]
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    moves = [(os.POSIX_SPAWN_OPEN, 1, stdout, flags, 0o644), (os.POSIX_SPAWN_OPEN, 2, stderr, flags, 0o644)]
    began = time.perf_counter()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    child = os.posix_spawnp(command[0], command, environment, file_actions=moves)
    _, status, usage = os.wait4(child, 0)
    wall = time.perf_counter() - began
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss, in bytes
    cpu = usage.ru_utime + usage.ru_stime
    print(os.waitstatus_to_exitcode(status), wall, cpu, usage.ru_maxrss * unit)


if __name__ == "__main__":
    main()
