/* decimal.c — converts numbers to decimal text and back, exactly, without locale, rounding mode or floating point.
 *
 * Reading: the text is w·10^e. If w has at most 19 digits and |e| ≤ 27, then w·5^e is one 128-bit product or quotient
 * and is rounded from there. Otherwise both sides of the fraction become big integers; 64 bits of their quotient, and
 * whether the remainder is 0, decide the rounding. 800 digits decide any double; of the digits after them it only
 * matters whether all are zeros.
 *
 * Writing: the shortest digits that read back as the same number, and of those the nearest, by the method of Steele and
 * White as given by Burger and Dybvig (1996): v = r/s, the gaps to its neighbours m-/s and m+/s, all big integers;
 * digits are produced until the rest is inside the gap. */
#include "core/core.h"

#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 u128;

/* ---- big integers: for up to 800 digits, or 5^1126 shifted by 64 bits ------------------------------------------- */

enum { LIMBS = 96, DIGITS = 800 };
typedef struct {
    int      n; /* limbs in use; the top one is not 0 */
    uint32_t limb[LIMBS];
} big;

static void big_set(big *a, uint64_t v)
{
    a->n = 0;
    for (; v; v >>= 32) a->limb[a->n++] = (uint32_t)v;
}

static void big_mul_add(big *a, uint32_t by, uint32_t plus)
{
    uint64_t carry = plus;
    for (int i = 0; i < a->n; i++) {
        carry += (uint64_t)a->limb[i] * by;
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry) a->limb[a->n++] = (uint32_t)carry;
}

static void big_mul_pow5(big *a, int64_t e)
{
    for (; e >= 13; e -= 13) big_mul_add(a, 1220703125u, 0); /* 5^13, the last that fits */
    uint32_t rest = 1;
    while (e-- > 0) rest *= 5;
    if (rest > 1) big_mul_add(a, rest, 0);
}

static int big_bits(const big *a) { return a->n ? 32 * a->n - __builtin_clz(a->limb[a->n - 1]) : 0; }

static void big_shl(big *a, int by)
{
    if (!a->n || by <= 0) return;
    int whole = by / 32, part = by % 32;
    for (int i = a->n - 1; i >= 0; i--) a->limb[i + whole] = a->limb[i];
    for (int i = 0; i < whole; i++) a->limb[i] = 0;
    a->n += whole;
    if (!part) return;
    uint32_t carry = 0;
    for (int i = whole; i < a->n; i++) {
        uint32_t x = a->limb[i];
        a->limb[i] = x << part | carry;
        carry = x >> (32 - part);
    }
    if (carry) a->limb[a->n++] = carry;
}

static int big_compare(const big *a, const big *b)
{
    if (a->n != b->n) return a->n < b->n ? -1 : 1;
    for (int i = a->n - 1; i >= 0; i--)
        if (a->limb[i] != b->limb[i]) return a->limb[i] < b->limb[i] ? -1 : 1;
    return 0;
}

static void big_sub(big *a, const big *b) /* a >= b */
{
    uint32_t borrow = 0;
    for (int i = 0; i < a->n; i++) {
        uint64_t take = (uint64_t)(i < b->n ? b->limb[i] : 0) + borrow;
        borrow = a->limb[i] < take;
        a->limb[i] = (uint32_t)(a->limb[i] - take);
    }
    while (a->n && !a->limb[a->n - 1]) a->n--;
}

static void big_add(big *a, const big *b)
{
    uint64_t carry = 0;
    int      n = a->n > b->n ? a->n : b->n;
    for (int i = 0; i < n; i++) {
        carry += (uint64_t)(i < a->n ? a->limb[i] : 0) + (i < b->n ? b->limb[i] : 0);
        a->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    a->n = n;
    if (carry) a->limb[a->n++] = (uint32_t)carry;
}

static int big_compare_sum(big *a, const big *b, const big *c) /* compares a + b with c; a is unchanged at return */
{
    big_add(a, b);
    int r = big_compare(a, c);
    big_sub(a, b);
    return r;
}

/* ---- text to double ---------------------------------------------------------------------------------------------- */

/* The double nearest to q·2^e (slightly more if sticky), ties to even; q has its top bit set. Infinity if too large. */
static double round_to_double(uint64_t q, int64_t e, bool sticky)
{
    int64_t top = e + 63; /* 2^top <= value < 2^(top+1) */
    if (top > 1023) return HUGE_VAL;
    int      drop = top >= -1022 ? 11 : (int)(top < -1022 - 54 ? 65 : 11 + (-1022 - top)); /* bits dropped */
    uint64_t m, rest, half;
    if (drop < 64) {
        m = q >> drop, rest = q & (((uint64_t)1 << drop) - 1), half = (uint64_t)1 << (drop - 1);
    } else { /* below the smallest double: half of it at drop 64 */
        m = 0, rest = drop == 64 ? q : 0, half = (uint64_t)1 << 63;
    }
    if (rest > half || (rest == half && (sticky || (m & 1)))) m++;
    uint64_t bits = m;
    if (top >= -1022) bits = m + ((uint64_t)(top + 1022) << 52); /* m has its 2^52: the exponent counts one less */
    if (bits >= (uint64_t)0x7ff << 52) return HUGE_VAL;
    double v;
    memcpy(&v, &bits, sizeof v);
    return v;
}

typedef struct {
    uint64_t first; /* the first 19 digits                        */
    int64_t  e10;   /* exponent of the last digit kept            */
    int      n;     /* digits kept, without leading zeros         */
    bool     more;  /* true if a digit that was not kept is not 0 */
    bool     negative;
    char     digit[DIGITS];
} decimal;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static void add_digit(decimal *d, char c, bool fraction)
{
    if (d->n == DIGITS) {
        d->more |= c != '0';
        d->e10 += !fraction;
        return;
    }
    if (d->n || c != '0') {
        if (d->n < 19) d->first = 10 * d->first + (uint64_t)(c - '0');
        d->digit[d->n++] = c;
    }
    d->e10 -= fraction;
}

static bool scan(const char *p, size_t n, decimal *d)
{
    const char *end = p + n;
    bool        any = false;
    d->first = 0, d->e10 = 0, d->n = 0, d->more = false, d->negative = false;
    if (p < end && (*p == '-' || *p == '+')) d->negative = *p++ == '-';
    for (; p < end && is_digit(*p); p++, any = true) add_digit(d, *p, false);
    if (p < end && *p == '.')
        for (p++; p < end && is_digit(*p); p++, any = true) add_digit(d, *p, true);
    if (!any) return false;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        bool    minus = false;
        int64_t e = 0;
        if (p < end && (*p == '-' || *p == '+')) minus = *p++ == '-';
        if (p == end) return false;
        for (; p < end && is_digit(*p); p++)
            if (e < INT64_MAX / 100) e = 10 * e + (*p - '0'); /* a larger exponent would need a longer text to matter */
        d->e10 += minus ? -e : e;
    }
    return p == end;
}

/* first·10^e10 with at most 19 digits and |e10| ≤ 27. */
static double small(const decimal *d)
{
    static const uint64_t pow5[] = {1,
                                    5,
                                    25,
                                    125,
                                    625,
                                    3125,
                                    15625,
                                    78125,
                                    390625,
                                    1953125,
                                    9765625,
                                    48828125,
                                    244140625,
                                    1220703125,
                                    6103515625,
                                    30517578125,
                                    152587890625,
                                    762939453125,
                                    3814697265625,
                                    19073486328125,
                                    95367431640625,
                                    476837158203125,
                                    2384185791015625,
                                    11920928955078125,
                                    59604644775390625,
                                    298023223876953125,
                                    1490116119384765625,
                                    7450580596923828125};
    u128                  x, rest = 0;
    int64_t               e = d->e10;
    if (e >= 0) {
        x = (u128)d->first * pow5[e];
    } else { /* as many bits as possible: at least 64 remain after the division by at most 2^63 */
        int shift = __builtin_clzll(d->first);
        x = (u128)(d->first << shift) << 64;
        rest = x % pow5[-e], x /= pow5[-e];
        e -= shift + 64;
    }
    uint64_t high = (uint64_t)(x >> 64), low = (uint64_t)x;
    if (!high) {
        int shift = __builtin_clzll(low);
        return round_to_double(low << shift, e - shift, rest != 0);
    }
    int shift = __builtin_clzll(high);
    if (shift) high = high << shift | low >> (64 - shift), low <<= shift;
    return round_to_double(high, e + 64 - shift, low || rest);
}

static double large(const decimal *d)
{
    int64_t magnitude = d->n + d->e10; /* value < 10^magnitude */
    if (magnitude > 310) return HUGE_VAL;
    if (magnitude < -324) return 0;
    big a, b;
    big_set(&a, 0), big_set(&b, 1);
    for (int i = 0; i < d->n; i++) {
        if (a.n) big_mul_add(&a, 10, (uint32_t)(d->digit[i] - '0'));
        else big_set(&a, (uint64_t)(d->digit[i] - '0'));
    }
    int64_t e = d->e10;
    if (d->more) big_mul_add(&a, 10, 1), e--; /* anything between this digit and the next */
    if (e >= 0) big_mul_pow5(&a, e);
    else big_mul_pow5(&b, -e);

    int shift = big_bits(&a) - big_bits(&b); /* first b·2^shift is about a; then at most a, and more than half of it */
    if (shift > 0) big_shl(&b, shift);
    else big_shl(&a, -shift);
    if (big_compare(&a, &b) < 0) big_shl(&a, 1), shift--;
    uint64_t q = 0;
    for (int i = 0; i < 64; i++) {
        q <<= 1;
        if (big_compare(&a, &b) >= 0) big_sub(&a, &b), q |= 1;
        big_shl(&a, 1);
    }
    return round_to_double(q, e + shift - 63, a.n != 0);
}

bool tn_parse_double(const char *text, size_t bytes, double *value)
{
    decimal d;
    if (!text || !scan(text, bytes, &d)) return false;
    double v = d.n == 0 ? 0 : d.n <= 19 && d.e10 >= -27 && d.e10 <= 27 ? small(&d) : large(&d);
    if (v > 1.7976931348623157e308) return false;
    *value = d.negative ? -v : v;
    return true;
}

/* ---- double to text ---------------------------------------------------------------------------------------------- */

/* The first estimate of k is ceil(log10(2^top)), at most one too small; 1262611 / 2^22 is log10(2), truncated. */
static int guess(uint64_t m, int e)
{
    const int top = e + 63 - __builtin_clzll(m);
    return (int)((top * (int64_t)1262611 + (1 << 22) - 1) >> 22);
}

/* The fast path for numbers of medium size, which are most numbers in texts: no sum here exceeds 2^124. */
enum { SMALL_LEAST = -110, SMALL_MOST = 60 };
static int shortest_small(uint64_t m, int e, bool uneven, char *digit, int *k)
{
    const bool even = !(m & 1);
    const int  left = e > 0 ? e : 0;
    u128       r = (u128)m << (1 + uneven + left), s = (u128)1 << (1 + uneven + left - e);
    u128       up = (u128)1 << (uneven + left), down = (u128)1 << left;
    *k = guess(m, e);
    for (int i = 0; i < *k; i++) s *= 10;
    for (int i = *k; i < 0; i++) r *= 10, up *= 10, down *= 10;
    if (r + up > s || (r + up == s && even)) ++*k;
    else r *= 10, up *= 10, down *= 10;
    for (int n = 0;;) {
        int d = 0;
        for (; r >= s; d++) r -= s;
        const bool low = r < down || (r == down && even), high = r + up > s || (r + up == s && even);
        const bool next = low && high ? 2 * r > s || (2 * r == s && (d & 1)) : high;
        digit[n++] = (char)('0' + d + next);
        if (low || high) return n;
        r *= 10, up *= 10, down *= 10;
    }
}

/* Writes the digits of m·2^e, at most 17, to digit; value = 0.d1d2… · 10^k. uneven: the gap below m is half the gap
 * above it. */
static int shortest(uint64_t m, int e, bool uneven, char *digit, int *k)
{
    if (e >= SMALL_LEAST && e <= SMALL_MOST) return shortest_small(m, e, uneven, digit, k);
    bool even = !(m & 1); /* then the bounds of the gap also read back as m */
    big  r, s, up, down;
    big_set(&r, m), big_set(&s, 1), big_set(&up, 1), big_set(&down, 1);
    big_shl(&r, 1 + uneven + (e > 0 ? e : 0));
    big_shl(&s, 1 + uneven + (e < 0 ? -e : 0));
    big_shl(&up, uneven + (e > 0 ? e : 0));
    big_shl(&down, e > 0 ? e : 0);

    *k = guess(m, e);
    if (*k >= 0) {
        big_mul_pow5(&s, *k), big_shl(&s, *k);
    } else {
        big_mul_pow5(&r, -*k), big_shl(&r, -*k);
        big_mul_pow5(&up, -*k), big_shl(&up, -*k);
        big_mul_pow5(&down, -*k), big_shl(&down, -*k);
    }
    int c = big_compare_sum(&r, &up, &s);
    if (c > 0 || (c == 0 && even)) ++*k;
    else big_mul_add(&r, 10, 0), big_mul_add(&up, 10, 0), big_mul_add(&down, 10, 0);

    for (int n = 0;;) {
        int d = 0;
        while (big_compare(&r, &s) >= 0) big_sub(&r, &s), d++;
        int  low = big_compare(&r, &down);
        int  high = big_compare_sum(&r, &up, &s);
        bool stop_low = low < 0 || (low == 0 && even), stop_high = high > 0 || (high == 0 && even);
        if (stop_low && stop_high) { /* both this digit and the next one read back: choose the nearer */
            big_shl(&r, 1);
            int c2 = big_compare(&r, &s);
            stop_high = c2 > 0 || (c2 == 0 && (d & 1));
        }
        if (stop_low || stop_high) {
            digit[n++] = (char)('0' + d + stop_high);
            return n;
        }
        digit[n++] = (char)('0' + d);
        big_mul_add(&r, 10, 0), big_mul_add(&up, 10, 0), big_mul_add(&down, 10, 0);
    }
}

/* As Python writes it: 0.0001, 123.0, 1e+16, 1.5e-07. */
static int layout(bool negative, const char *digit, int n, int k, char *to)
{
    char *p = to;
    if (negative) *p++ = '-';
    if (k > -4 && k <= 16) {
        int i = 0;
        if (k <= 0) *p++ = '0';
        for (; i < k; i++) *p++ = i < n ? digit[i] : '0';
        *p++ = '.';
        for (int j = k; j < 0; j++) *p++ = '0';
        if (i >= n) *p++ = '0';
        for (; i < n; i++) *p++ = digit[i];
    } else {
        int e = k - 1;
        *p++ = digit[0];
        if (n > 1) *p++ = '.';
        for (int i = 1; i < n; i++) *p++ = digit[i];
        *p++ = 'e', *p++ = e < 0 ? '-' : '+';
        if (e < 0) e = -e;
        if (e >= 100) *p++ = (char)('0' + e / 100);
        *p++ = (char)('0' + e / 10 % 10), *p++ = (char)('0' + e % 10);
    }
    *p = 0;
    return (int)(p - to);
}

static int special(const char *text, char *to)
{
    memcpy(to, text, strlen(text) + 1);
    return (int)strlen(text);
}

int tn_format_double(double v, char to[32])
{
    uint64_t bits;
    if (!to) return tn_raise(TN_EINVAL, "tn_format_double: the buffer is NULL"), 0;
    memcpy(&bits, &v, sizeof bits);
    bool     negative = bits >> 63;
    int      e = (int)(bits >> 52 & 0x7ff);
    uint64_t m = bits & (((uint64_t)1 << 52) - 1);
    if (e == 0x7ff) return special(m ? "nan" : negative ? "-inf" : "inf", to);
    if (!e && !m) return special(negative ? "-0.0" : "0.0", to);
    bool uneven = e > 1 && m == 0;
    if (e) m |= (uint64_t)1 << 52;
    else e = 1;
    char digit[20];
    int  k, n = shortest(m, e - 1075, uneven, digit, &k);
    return layout(negative, digit, n, k, to);
}

int tn_format_float(float v, char to[32])
{
    uint32_t bits;
    if (!to) return tn_raise(TN_EINVAL, "tn_format_float: the buffer is NULL"), 0;
    memcpy(&bits, &v, sizeof bits);
    bool     negative = bits >> 31;
    int      e = (int)(bits >> 23 & 0xff);
    uint32_t m = bits & 0x7fffffu;
    if (e == 0xff) return special(m ? "nan" : negative ? "-inf" : "inf", to);
    if (!e && !m) return special(negative ? "-0.0" : "0.0", to);
    bool uneven = e > 1 && m == 0;
    if (e) m |= (uint32_t)1 << 23;
    else e = 1;
    char digit[20];
    int  k, n = shortest(m, e - 150, uneven, digit, &k);
    return layout(negative, digit, n, k, to);
}
