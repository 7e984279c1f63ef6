"""The compiled core of ftprl."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

HASH_VERSION: Final[int]

def feature_hash(data: bytes | str, seed: int = 0) -> int: ...
def feature_hashes(names: Sequence[str | bytes], seed: int = 0) -> NDArray[np.uint64]: ...
