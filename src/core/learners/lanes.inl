// D: four doubles worked on at once. Every function here does to each of them what its last version does, to
// the bit, so that every instruction set learns the same model. Included inside a namespace.

// What has to be compiled into its caller: what it takes and returns would otherwise go through memory.
#if defined(__GNUC__)
#define FTPRL_INSIDE inline __attribute__((always_inline))
#else
#define FTPRL_INSIDE inline
#endif

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

// F: four floats. `narrow` rounds to what a cell of type T holds, `wide` is exact.

#if defined(__AVX2__) && !defined(FTPRL_PORTABLE)

using D = __m256d;

inline D all(double v) { return _mm256_set1_pd(v); }
inline D four(double a, double b, double c, double d) { return _mm256_setr_pd(a, b, c, d); }
inline D root(D v) { return _mm256_sqrt_pd(v); }
inline D larger(D a, D b) { return _mm256_max_pd(a, b); }
inline D smaller(D a, D b) { return _mm256_min_pd(a, b); }
inline D size(D v) { return _mm256_andnot_pd(all(-0.0), v); }
inline D opposite(D v) { return _mm256_xor_pd(v, all(-0.0)); }
inline D signed_as(D size, D z) { return _mm256_or_pd(size, _mm256_and_pd(z, all(-0.0))); }
inline D where_positive(D test, D v) { return _mm256_and_pd(_mm256_cmp_pd(test, all(0.0), _CMP_GT_OQ), v); }
inline double first(D v) { return _mm256_cvtsd_f64(v); }

using F = __m128;

inline D wide(F v) { return _mm256_cvtps_pd(v); }
inline F to_floats(D v) { return _mm256_cvtpd_ps(v); }
inline F larger(F a, F b) { return _mm_max_ps(a, b); }
inline F size(F v) { return _mm_andnot_ps(_mm_set1_ps(-0.0f), v); }
inline bool any_below_normal(F v) { return _mm_movemask_ps(_mm_cmplt_ps(size(v), _mm_set1_ps(FLT_MIN))) != 0; }
inline F load(const float* p) { return _mm_loadu_ps(p); }
inline D load(const double* p) { return _mm256_loadu_pd(p); }
inline void store(float* p, F v) { _mm_storeu_ps(p, v); }
inline void store(double* p, D v) { _mm256_storeu_pd(p, v); }
inline bool any_nonzero(D v) { return _mm256_movemask_pd(_mm256_cmp_pd(v, all(0.0), _CMP_NEQ_UQ)) != 0; }

inline D only_first(D v, int n) {
    return _mm256_and_pd(v, _mm256_cmp_pd(_mm256_setr_pd(0, 1, 2, 3), all(n), _CMP_LT_OQ));
}

inline double sum(D v) {
    const __m128d low = _mm256_castpd256_pd128(v), high = _mm256_extractf128_pd(v, 1);
    const __m128d pairs = _mm_hadd_pd(low, high);
    return _mm_cvtsd_f64(pairs) + _mm_cvtsd_f64(_mm_unpackhi_pd(pairs, pairs));
}

// The sum of each.
inline D sums_of(D a, D b, D c, D d) {
    const D ab = _mm256_hadd_pd(a, b), cd = _mm256_hadd_pd(c, d);
    return _mm256_permute2f128_pd(ab, cd, 0x20) + _mm256_permute2f128_pd(ab, cd, 0x31);
}

inline void gather(const Cell<float>* const* p, F& z, F& R, F& M, F& S) {
    z = _mm_load_ps(&p[0]->z);
    R = _mm_load_ps(&p[1]->z);
    M = _mm_load_ps(&p[2]->z);
    S = _mm_load_ps(&p[3]->z);
    _MM_TRANSPOSE4_PS(z, R, M, S);
}

inline void scatter(Cell<float>* const* p, F z, F R, F M, F S) {
    _MM_TRANSPOSE4_PS(z, R, M, S);
    _mm_store_ps(&p[0]->z, z);
    _mm_store_ps(&p[1]->z, R);
    _mm_store_ps(&p[2]->z, M);
    _mm_store_ps(&p[3]->z, S);
}

inline void transpose(D& a, D& b, D& c, D& d) {
    const D e = _mm256_unpacklo_pd(a, b), f = _mm256_unpackhi_pd(a, b);
    const D g = _mm256_unpacklo_pd(c, d), h = _mm256_unpackhi_pd(c, d);
    a = _mm256_permute2f128_pd(e, g, 0x20);
    b = _mm256_permute2f128_pd(f, h, 0x20);
    c = _mm256_permute2f128_pd(e, g, 0x31);
    d = _mm256_permute2f128_pd(f, h, 0x31);
}

inline void gather(const Cell<double>* const* p, D& z, D& R, D& M, D& S) {
    z = _mm256_load_pd(&p[0]->z);
    R = _mm256_load_pd(&p[1]->z);
    M = _mm256_load_pd(&p[2]->z);
    S = _mm256_load_pd(&p[3]->z);
    transpose(z, R, M, S);
}

inline void scatter(Cell<double>* const* p, D z, D R, D M, D S) {
    transpose(z, R, M, S);
    _mm256_store_pd(&p[0]->z, z);
    _mm256_store_pd(&p[1]->z, R);
    _mm256_store_pd(&p[2]->z, M);
    _mm256_store_pd(&p[3]->z, S);
}

#elif defined(__SSE2__) && !defined(FTPRL_PORTABLE)

struct D {
    __m128d a, b;
};

inline D operator+(D u, D v) { return {u.a + v.a, u.b + v.b}; }
inline D operator-(D u, D v) { return {u.a - v.a, u.b - v.b}; }
inline D operator*(D u, D v) { return {u.a * v.a, u.b * v.b}; }
inline D operator/(D u, D v) { return {u.a / v.a, u.b / v.b}; }
inline D& operator+=(D& u, D v) { return u = u + v; }
inline D all(double v) { return {_mm_set1_pd(v), _mm_set1_pd(v)}; }
inline D four(double a, double b, double c, double d) { return {_mm_setr_pd(a, b), _mm_setr_pd(c, d)}; }
inline D root(D v) { return {_mm_sqrt_pd(v.a), _mm_sqrt_pd(v.b)}; }
inline D larger(D u, D v) { return {_mm_max_pd(u.a, v.a), _mm_max_pd(u.b, v.b)}; }
inline D smaller(D u, D v) { return {_mm_min_pd(u.a, v.a), _mm_min_pd(u.b, v.b)}; }
inline __m128d minus_zero() { return _mm_set1_pd(-0.0); }
inline D size(D v) { return {_mm_andnot_pd(minus_zero(), v.a), _mm_andnot_pd(minus_zero(), v.b)}; }
inline D opposite(D v) { return {_mm_xor_pd(v.a, minus_zero()), _mm_xor_pd(v.b, minus_zero())}; }
inline __m128d signed_as(__m128d size, __m128d z) { return _mm_or_pd(size, _mm_and_pd(z, minus_zero())); }
inline D signed_as(D size, D z) { return {signed_as(size.a, z.a), signed_as(size.b, z.b)}; }
inline __m128d where_positive(__m128d test, __m128d v) { return _mm_and_pd(_mm_cmpgt_pd(test, _mm_setzero_pd()), v); }
inline D where_positive(D test, D v) { return {where_positive(test.a, v.a), where_positive(test.b, v.b)}; }
inline double first(D v) { return _mm_cvtsd_f64(v.a); }
inline D only_first(D v, int n) {
    const __m128d count = _mm_set1_pd(n);
    return {_mm_and_pd(v.a, _mm_cmplt_pd(_mm_setr_pd(0, 1), count)),
            _mm_and_pd(v.b, _mm_cmplt_pd(_mm_setr_pd(2, 3), count))};
}
inline double pair(__m128d v) { return _mm_cvtsd_f64(v) + _mm_cvtsd_f64(_mm_unpackhi_pd(v, v)); }
inline double sum(D v) { return pair(v.a) + pair(v.b); }
inline D sums_of(D a, D b, D c, D d) { return four(sum(a), sum(b), sum(c), sum(d)); }

using F = __m128;

inline D wide(F v) { return {_mm_cvtps_pd(v), _mm_cvtps_pd(_mm_movehl_ps(v, v))}; }
inline F to_floats(D v) { return _mm_movelh_ps(_mm_cvtpd_ps(v.a), _mm_cvtpd_ps(v.b)); }
inline F larger(F a, F b) { return _mm_max_ps(a, b); }
inline F size(F v) { return _mm_andnot_ps(_mm_set1_ps(-0.0f), v); }
inline bool any_below_normal(F v) { return _mm_movemask_ps(_mm_cmplt_ps(size(v), _mm_set1_ps(FLT_MIN))) != 0; }
inline F load(const float* p) { return _mm_loadu_ps(p); }
inline D load(const double* p) { return {_mm_loadu_pd(p), _mm_loadu_pd(p + 2)}; }
inline bool any_nonzero(D v) {
    const __m128d zero = _mm_setzero_pd();
    return _mm_movemask_pd(_mm_or_pd(_mm_cmpneq_pd(v.a, zero), _mm_cmpneq_pd(v.b, zero))) != 0;
}
inline void store(float* p, F v) { _mm_storeu_ps(p, v); }
inline void store(double* p, D v) {
    _mm_storeu_pd(p, v.a);
    _mm_storeu_pd(p + 2, v.b);
}

inline void gather(const Cell<float>* const* p, F& z, F& R, F& M, F& S) {
    z = _mm_load_ps(&p[0]->z);
    R = _mm_load_ps(&p[1]->z);
    M = _mm_load_ps(&p[2]->z);
    S = _mm_load_ps(&p[3]->z);
    _MM_TRANSPOSE4_PS(z, R, M, S);
}

inline void scatter(Cell<float>* const* p, F z, F R, F M, F S) {
    _MM_TRANSPOSE4_PS(z, R, M, S);
    _mm_store_ps(&p[0]->z, z);
    _mm_store_ps(&p[1]->z, R);
    _mm_store_ps(&p[2]->z, M);
    _mm_store_ps(&p[3]->z, S);
}

// The two numbers at `p` in one lane, and those at `q` in the next.
inline void cross(const double* p, const double* q, __m128d& low, __m128d& high) {
    const __m128d u = _mm_load_pd(p), v = _mm_load_pd(q);
    low = _mm_unpacklo_pd(u, v);
    high = _mm_unpackhi_pd(u, v);
}

inline void gather(const Cell<double>* const* p, D& z, D& R, D& M, D& S) {
    cross(&p[0]->z, &p[1]->z, z.a, R.a);
    cross(&p[2]->z, &p[3]->z, z.b, R.b);
    cross(&p[0]->M, &p[1]->M, M.a, S.a);
    cross(&p[2]->M, &p[3]->M, M.b, S.b);
}

inline void uncross(double* p, double* q, __m128d low, __m128d high) {
    _mm_store_pd(p, _mm_unpacklo_pd(low, high));
    _mm_store_pd(q, _mm_unpackhi_pd(low, high));
}

inline void scatter(Cell<double>* const* p, D z, D R, D M, D S) {
    uncross(&p[0]->z, &p[1]->z, z.a, R.a);
    uncross(&p[2]->z, &p[3]->z, z.b, R.b);
    uncross(&p[0]->M, &p[1]->M, M.a, S.a);
    uncross(&p[2]->M, &p[3]->M, M.b, S.b);
}

#else

struct D {
    double v[4];
};

// Inside its callers, or numbers go through memory: in functions as long as some kernels GCC would make it a call.
template <class F>
FTPRL_INSIDE D each(F f) {
    return {{f(0), f(1), f(2), f(3)}};
}

inline D operator+(D a, D b) {
    return each([&](int j) { return a.v[j] + b.v[j]; });
}
inline D operator-(D a, D b) {
    return each([&](int j) { return a.v[j] - b.v[j]; });
}
inline D operator*(D a, D b) {
    return each([&](int j) { return a.v[j] * b.v[j]; });
}
inline D operator/(D a, D b) {
    return each([&](int j) { return a.v[j] / b.v[j]; });
}
inline D& operator+=(D& a, D b) { return a = a + b; }
inline D all(double v) { return {{v, v, v, v}}; }
inline D four(double a, double b, double c, double d) { return {{a, b, c, d}}; }
inline D root(D a) {
    return each([&](int j) { return sqrt(a.v[j]); });
}
inline D larger(D a, D b) {
    return each([&](int j) { return a.v[j] > b.v[j] ? a.v[j] : b.v[j]; });
}
inline D smaller(D a, D b) {
    return each([&](int j) { return a.v[j] < b.v[j] ? a.v[j] : b.v[j]; });
}
inline D size(D a) {
    return each([&](int j) { return fabs(a.v[j]); });
}
inline D opposite(D a) {
    return each([&](int j) { return -a.v[j]; });
}
inline D signed_as(D size, D z) {
    return each([&](int j) { return copysign(size.v[j], z.v[j]); });
}  // size >= 0
inline D where_positive(D test, D a) {
    return each([&](int j) { return test.v[j] > 0.0 ? a.v[j] : 0.0; });
}
inline double first(D a) { return a.v[0]; }
inline D only_first(D a, int n) {
    return each([&](int j) { return j < n ? a.v[j] : 0.0; });
}
inline double sum(D a) { return (a.v[0] + a.v[1]) + (a.v[2] + a.v[3]); }
inline D sums_of(D a, D b, D c, D d) { return four(sum(a), sum(b), sum(c), sum(d)); }

struct F {
    float v[4];
};

inline D wide(F a) {
    return each([&](int j) { return static_cast<double>(a.v[j]); });
}
inline float rounded(double v) { return static_cast<float>(v); }
inline F to_floats(D a) { return {{rounded(a.v[0]), rounded(a.v[1]), rounded(a.v[2]), rounded(a.v[3])}}; }
inline float larger(float a, float b) { return a > b ? a : b; }
inline F larger(F a, F b) {
    return {{larger(a.v[0], b.v[0]), larger(a.v[1], b.v[1]), larger(a.v[2], b.v[2]), larger(a.v[3], b.v[3])}};
}
inline F size(F a) { return {{fabsf(a.v[0]), fabsf(a.v[1]), fabsf(a.v[2]), fabsf(a.v[3])}}; }
inline bool any_below_normal(F a) {
    return fabsf(a.v[0]) < FLT_MIN || fabsf(a.v[1]) < FLT_MIN || fabsf(a.v[2]) < FLT_MIN || fabsf(a.v[3]) < FLT_MIN;
}
inline bool any_nonzero(D a) { return a.v[0] != 0.0 || a.v[1] != 0.0 || a.v[2] != 0.0 || a.v[3] != 0.0; }
inline F load(const float* p) { return {{p[0], p[1], p[2], p[3]}}; }
inline D load(const double* p) { return {{p[0], p[1], p[2], p[3]}}; }
template <class T, class N>
inline void store(T* p, N v) {
    for (int j = 0; j < 4; ++j) p[j] = v.v[j];
}

template <class T, class N>
FTPRL_INSIDE void gather(const Cell<T>* const* p, N& z, N& R, N& M, N& S) {
    z = {{p[0]->z, p[1]->z, p[2]->z, p[3]->z}};
    R = {{p[0]->R, p[1]->R, p[2]->R, p[3]->R}};
    M = {{p[0]->M, p[1]->M, p[2]->M, p[3]->M}};
    S = {{p[0]->S, p[1]->S, p[2]->S, p[3]->S}};
}

template <class T, class N>
FTPRL_INSIDE void scatter(Cell<T>* const* p, N z, N R, N M, N S) {
    for (int j = 0; j < 4; ++j) *p[j] = {z.v[j], R.v[j], M.v[j], S.v[j]};
}

#endif

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
