// Logarithms and exponentials of several numbers at once, and the log loss of several scores. Included by loops.inl.

// log(1 + e) for e from 0 to 1, four at a time: 2 atanh(s) with s = e / (2 + e), by a polynomial in s^2 through the
// Chebyshev points. Within 3 units in the last place, and several times as fast as the library's one by one.
constexpr double ATANH[] = {0x1.5555555555555p-1, 0x1.9999999999944p-2, 0x1.2492492499d46p-2, 0x1.c71c71bedea97p-3,
                            0x1.745d19937b1fcp-3, 0x1.3b13515f6f9efp-3, 0x1.111abdc8abe16p-3, 0x1.e0a2d581ab68fp-4,
                            0x1.bc37f0140c19ep-4, 0x1.32e0d25c9c761p-4, 0x1.401d3e65cdc48p-3};

inline void tails(const double* e, double* to, int n) {
    for (int j = 0; j < n; j += 4) {
        const D v = load(e + j), s = v / (all(2.0) + v), w = s * s;
        D q = all(ATANH[10]);
        for (int i = 9; i >= 0; --i) q = q * w + all(ATANH[i]);
        store(to + j, s * (all(2.0) + w * q));
    }
}

// The log loss of n experts at once, by the operations of Loss::at for each: scores s and tails e, filled up with zeros
// to a multiple of four; values without the tail, slopes, and the probability of the label.
inline void log_losses(const double* s, const double* e, int n, double y, double* value, double* slope,
                       double* probability) {
    const D minus_y = all(-y), half = all(0.5), one = all(1.0);
    for (int j = 0; j < n; j += 4) {
        const D v = minus_y * load(s + j), tail = load(e + j), whole = one + tail;
        store(value + j, half * v + half * size(v));
        store(slope + j, minus_y * (larger(tail, half + signed_as(half, v)) / whole));
        store(probability + j, larger(tail, one - where_positive(v, one)) / whole);  // the tail is at most 1
    }
}

// e^x of n numbers of at most 0, within 2 units in the last place; e^-700 below that. Without a call, so that the
// compiler can take several at once; the same operations for every instruction set.
inline void exp_below(const double* x, double* out, int n) {
    constexpr double LOG2E = 1.4426950408889634, LN2_HIGH = 0x1.62e42feep-1, LN2_LOW = 0x1.a39ef35793c76p-33;
    constexpr double SHIFT = 0x1.8p52, FARTHEST = -700.0;
    for (int i = 0; i < n; ++i) {
        const double t = x[i] > FARTHEST ? x[i] : FARTHEST, shifted = t * LOG2E + SHIFT, whole = shifted - SHIFT;
        const double r = (t - whole * LN2_HIGH) - whole * LN2_LOW;
        double p = 1.0 / 6227020800.0;
        p = p * r + 1.0 / 479001600.0;
        p = p * r + 1.0 / 39916800.0;
        p = p * r + 1.0 / 3628800.0;
        p = p * r + 1.0 / 362880.0;
        p = p * r + 1.0 / 40320.0;
        p = p * r + 1.0 / 5040.0;
        p = p * r + 1.0 / 720.0;
        p = p * r + 1.0 / 120.0;
        p = p * r + 1.0 / 24.0;
        p = p * r + 1.0 / 6.0;
        p = p * r + 0.5;
        p = p * r + 1.0;
        p = p * r + 1.0;
        std::uint64_t bits;
        memcpy(&bits, &shifted, sizeof bits);
        bits = (bits + 1023) << 52;  // the low bits of `shifted` are the exponent
        double power;
        memcpy(&power, &bits, sizeof power);
        out[i] = p * power;
    }
}
