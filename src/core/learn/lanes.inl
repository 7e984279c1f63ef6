// D: four doubles worked on at once. Every function here does to each of them what its last version does, to
// the bit, so that every instruction set learns the same model. Included inside a namespace.

// What has to be compiled into its caller: what it takes and returns would otherwise go through memory.
#define FTPRL_INSIDE inline __attribute__((always_inline))

template <class T>
struct alignas(4 * sizeof(T)) Cell {
    T z, R, M, S;
};

// A cell whose S is beside it in float64: together they fill 32 or 64 bytes and never lie in two lines of memory.
template <class T>
struct alignas(8 * sizeof(T)) SummedCell {
    Cell<T> cell;
    double S;
};

// What a table of one scale holds. With a receipt it is a SummedCell, unless the last number of a cell is S in float64.
template <class T, bool receipt, bool labelled>
struct RecordOf {
    using type = Cell<T>;
};
template <>
struct RecordOf<float, true, false> {
    using type = SummedCell<float>;
};
template <class T>
struct RecordOf<T, true, true> {
    using type = SummedCell<T>;
};

template <class T>
inline Cell<T>* cell_of(Cell<T>* record) {
    return record;
}
template <class T>
inline const Cell<T>* cell_of(const Cell<T>* record) {
    return record;
}
template <class T>
inline Cell<T>* cell_of(SummedCell<T>* record) {
    return &record->cell;
}
template <class T>
inline const Cell<T>* cell_of(const SummedCell<T>* record) {
    return &record->cell;
}

// Vectors of the compiler (GCC and Clang), which it makes instructions of for whatever processor it compiles for. F:
// four floats. `narrow` rounds to what a cell of type T holds, `wide` is exact.
using D = double __attribute__((vector_size(32)));
using F = float __attribute__((vector_size(16)));
using Bits = long long __attribute__((vector_size(32)));
using FloatBits = int __attribute__((vector_size(16)));

inline D all(double v) { return D{v, v, v, v}; }
inline D four(double a, double b, double c, double d) { return D{a, b, c, d}; }
FTPRL_INSIDE D root(D v) {
#if defined(__AVX2__)
    return _mm256_sqrt_pd(v);
#else
    return D{sqrt(v[0]), sqrt(v[1]), sqrt(v[2]), sqrt(v[3])};
#endif
}
FTPRL_INSIDE D larger(D a, D b) { return a > b ? a : b; }
FTPRL_INSIDE D smaller(D a, D b) { return a < b ? a : b; }
FTPRL_INSIDE Bits signs_of(D v) { return (Bits)v & (Bits)all(-0.0); }
FTPRL_INSIDE D size(D v) { return (D)((Bits)v & ~(Bits)all(-0.0)); }
FTPRL_INSIDE D opposite(D v) { return (D)((Bits)v ^ (Bits)all(-0.0)); }
FTPRL_INSIDE D signed_as(D size, D z) { return (D)((Bits)size | signs_of(z)); }  // size >= 0
FTPRL_INSIDE D where_positive(D test, D v) { return (D)((Bits)v & (Bits)(test > all(0.0))); }
FTPRL_INSIDE double first(D v) { return v[0]; }
FTPRL_INSIDE D only_first(D v, int n) { return (D)((Bits)v & (Bits)(four(0, 1, 2, 3) < all(n))); }
FTPRL_INSIDE double sum(D v) { return (v[0] + v[1]) + (v[2] + v[3]); }
FTPRL_INSIDE D sums_of(D a, D b, D c, D d) { return four(sum(a), sum(b), sum(c), sum(d)); }
FTPRL_INSIDE bool any_nonzero(D v) {
    const Bits other = (Bits)(v != all(0.0));
    return (other[0] | other[1] | other[2] | other[3]) != 0;
}

FTPRL_INSIDE D wide(F v) { return __builtin_convertvector(v, D); }
FTPRL_INSIDE F to_floats(D v) { return __builtin_convertvector(v, F); }
FTPRL_INSIDE F larger(F a, F b) { return a > b ? a : b; }
FTPRL_INSIDE F size(F v) { return (F)((FloatBits)v & 0x7fffffff); }
FTPRL_INSIDE bool any_below_normal(F v) {
    const FloatBits below = (FloatBits)(size(v) < F{FLT_MIN, FLT_MIN, FLT_MIN, FLT_MIN});
    return (below[0] | below[1] | below[2] | below[3]) != 0;
}

FTPRL_INSIDE F load(const float* p) {
    F v;
    memcpy(&v, p, sizeof v);
    return v;
}
FTPRL_INSIDE D load(const double* p) {
    D v;
    memcpy(&v, p, sizeof v);
    return v;
}
FTPRL_INSIDE void store(float* p, F v) { memcpy(p, &v, sizeof v); }
FTPRL_INSIDE void store(double* p, D v) { memcpy(p, &v, sizeof v); }

// Four cells as rows of a matrix become its columns, and back.
template <class N>
FTPRL_INSIDE void transpose(N& a, N& b, N& c, N& d) {
    const N e = {a[0], b[0], a[2], b[2]}, f = {a[1], b[1], a[3], b[3]};
    const N g = {c[0], d[0], c[2], d[2]}, h = {c[1], d[1], c[3], d[3]};
    a = N{e[0], e[1], g[0], g[1]};
    b = N{f[0], f[1], h[0], h[1]};
    c = N{e[2], e[3], g[2], g[3]};
    d = N{f[2], f[3], h[2], h[3]};
}

template <class T, class N>
FTPRL_INSIDE void gather(const Cell<T>* const* p, N& z, N& R, N& M, N& S) {
    z = load(&p[0]->z);
    R = load(&p[1]->z);
    M = load(&p[2]->z);
    S = load(&p[3]->z);
    transpose(z, R, M, S);
}

template <class T, class N>
FTPRL_INSIDE void scatter(Cell<T>* const* p, N z, N R, N M, N S) {
    transpose(z, R, M, S);
    store(&p[0]->z, z);
    store(&p[1]->z, R);
    store(&p[2]->z, M);
    store(&p[3]->z, S);
}

// Four numbers as a cell, or the values of a batch, hold them.
template <class T>
struct FourOf {
    using type = D;
};
template <>
struct FourOf<float> {
    using type = F;
};
template <class T>
using Four = typename FourOf<T>::type;

inline D wide(D v) { return v; }

template <class T>
inline Four<T> narrow(D v) {
    if constexpr (sizeof(T) == sizeof(float)) {
        return to_floats(v);
    } else {
        return v;
    }
}

// Four numbers of a cell, in double.
template <class T>
inline D wide_at(const T* p) {
    return wide(load(p));
}
