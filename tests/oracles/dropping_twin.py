"""Which experts of a mixture stay: their losses in octaves and blocks of rows, and the rules that go by them."""

from __future__ import annotations

import numpy as np

Floats = list[float]
BLOCK, WINDOW = 1024, 4
FIRST_DROP, FIRST_WINDOW = 2**14, 2**17
MAY_LEAVE = ("columns", "coin", "drift")  # in the order of the second rule


class Octaves:
    """Losses since the last power of two of the rows, row 0 of each sum, and of the octave before, row 1."""

    def __init__(self, names: list[str], scales: int) -> None:
        self.names, self.scales = names, scales
        self.octave, self.without = np.zeros((2, len(names))), np.zeros((2, len(names)))
        self.octave_loss = np.zeros(2)
        self.block = np.zeros(scales)
        self.windows = np.zeros((3, scales - WINDOW + 2 if scales > WINDOW else 0))

    def count(self, losses: Floats, mixture_loss: float, without: Floats, c: float, t: int) -> None:
        """Add the losses of row t, and those that the mixture had had without each expert."""
        may = np.array([name in MAY_LEAVE for name in self.names])
        self.octave[0] += [c * a for a in losses]
        self.without[0] += np.where(may, [c * a for a in without], 0.0)
        self.octave_loss[0] += c * mixture_loss
        if is_power(t):
            for sums in (self.octave, self.without, self.octave_loss):
                sums[1], sums[0] = sums[0].copy(), 0.0
        if self.scales > WINDOW:
            self.block += [c * a for a in losses[: self.scales]]
            if t % BLOCK == 0:
                self._close_block(t)

    def _close_block(self, t: int) -> None:
        before, current, latest = self.windows
        if t > BLOCK and is_power(t - BLOCK):
            before[:], current[:] = current.copy(), 0.0
        block = self.block.tolist()
        current += [*(min(block[i : i + WINDOW]) for i in range(self.scales - WINDOW + 1)), min(block)]
        if is_power(t):
            latest[:] = before + current
        self.block[:] = 0.0

    def leaving(self, t: int) -> list[str]:
        """Return the experts that are dropped after row t."""
        if t < FIRST_DROP or not is_power(t):
            return []
        octave, own = dict(zip(self.names, self.octave[1].tolist(), strict=True)), float(self.octave_loss[1])
        present = [name for name in MAY_LEAVE if name in octave]
        best = {a: min(loss for b, loss in octave.items() if b != a) for a in present}
        behind = [a for a in present if octave[a] - best[a] > 0.01 * abs(best[a])]
        limit = 1.001 * own if own >= 0.0 else own + 0.001 * abs(own)
        return behind or [a for a in present if self.without[1, self.names.index(a)] < limit][:1]

    def window(self, t: int) -> int | None:
        """Return the first of four neighbouring scales that stay after row t, or None."""
        if self.scales <= WINDOW or t < FIRST_WINDOW or not is_power(t):
            return None
        *sums, everything = self.windows[2].tolist()
        return sums.index(min(sums)) if min(sums) <= 1.001 * everything else None

    def keep(self, kept: list[int], scales: int) -> None:
        """Go on with these experts."""
        self.names = [self.names[j] for j in kept]
        self.octave, self.without = self.octave[:, kept], self.without[:, kept]
        if scales < self.scales:
            self.scales, self.block, self.windows = scales, np.zeros(scales), np.zeros((3, 0))


def is_power(t: int) -> bool:
    return t & (t - 1) == 0
