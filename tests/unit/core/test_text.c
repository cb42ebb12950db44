/* test_text.c — text: valid UTF-8, and numbers as decimals, compared with the C library and the definition. */
#define _GNU_SOURCE
#include "tests/common/check_main.h"

#include "core/core.h"
#include <fenv.h>
#include <float.h>

/* Runs with a sanitizer check memory: they do not need a million random numbers. */
static bool small(void) { return TN_TEST_SANITIZED || tn_test_slow(); }

static uint64_t state = 88172645463325252u;
static uint64_t rnd(void)
{
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
}

/* ---- UTF-8 ------------------------------------------------------------------------------------------------------- */

static int encode(uint32_t c, char *to)
{
    if (c < 0x80) return to[0] = (char)c, 1;
    if (c < 0x800) return to[0] = (char)(0xc0 | c >> 6), to[1] = (char)(0x80 | (c & 63)), 2;
    if (c < 0x10000)
        return to[0] = (char)(0xe0 | c >> 12), to[1] = (char)(0x80 | (c >> 6 & 63)), to[2] = (char)(0x80 | (c & 63)), 3;
    to[0] = (char)(0xf0 | c >> 18), to[1] = (char)(0x80 | (c >> 12 & 63));
    to[2] = (char)(0x80 | (c >> 6 & 63)), to[3] = (char)(0x80 | (c & 63));
    return 4;
}

TEST(every_code_point)
{
    uint32_t step = small() ? 97 : 1;
    for (uint32_t c = 0; c < 0x120000; c += step) {
        char text[40], utf8[8];
        int  n = encode(c, utf8);
        bool scalar = c <= 0x10ffff && (c < 0xd800 || c > 0xdfff);
        ck_assert_int_eq(tn_utf8_valid(utf8, (size_t)n) == (size_t)n, scalar);
        for (int cut = 1; cut < n; cut++) ck_assert_uint_eq(tn_utf8_valid(utf8, (size_t)cut), 0);
        if (!scalar || c % 5) continue;
        if (c < 0x10000) snprintf(text, sizeof text, "\"\\u%04x\"", c);
        else snprintf(text, sizeof text, "\"\\u%04X\\u%04x\"", 0xd800 + ((c - 0x10000) >> 10), 0xdc00 + (c & 0x3ff));
        tn_json *v = tn_json_parse(text, strlen(text));
        ck_assert_msg(v != NULL, "%s", tn_error_message());
        ck_assert_int_eq(tn_json_string_bytes(v), n);
        ck_assert_mem_eq(tn_json_string(v), utf8, (size_t)n);
        tn_json_free(v);
    }
}

/* The valid bytes at the start of p[0 … 4), by decoding. */
static size_t well_formed(const unsigned char p[4])
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t                good = 0;
    while (good < 4) {
        unsigned char first = p[good];
        size_t   len = first < 0x80 ? 1 : first < 0xc0 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf8 ? 4 : 0;
        uint32_t c = len == 1 ? first : first & (0x7fu >> len);
        bool     ok = len && good + len <= 4;
        for (size_t i = 1; ok && i < len; i++) {
            ok = (p[good + i] & 0xc0) == 0x80;
            c = c << 6 | (p[good + i] & 63u);
        }
        if (!ok || c < least[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)) break;
        good += len;
    }
    return good;
}

/* All sequences of three bytes, each with a few fourth bytes; and the position of an error in a long text. */
TEST(every_short_sequence)
{
    static const unsigned char fourth[] = {0x80, 'a'};
    uint32_t                   step = small() ? 251 : 1;
    for (uint32_t s = 0; s < 2u << 24; s += step) {
        unsigned char p[4] = {(unsigned char)(s >> 17), (unsigned char)(s >> 9), (unsigned char)(s >> 1),
                              fourth[s & 1]};
        if (tn_utf8_valid((const char *)p, 4) != well_formed(p))
            ck_abort_msg("%02x %02x %02x %02x", p[0], p[1], p[2], p[3]);
    }
    char text[64];
    for (size_t n = 0; n <= sizeof text; n++)
        for (size_t bad = 0; bad < n; bad++) {
            memset(text, 'a', sizeof text);
            text[bad] = (char)0x80;
            ck_assert_uint_eq(tn_utf8_valid(text, n), bad);
        }
}

/* ---- numbers as text --------------------------------------------------------------------------------------------- */

static void check_read(const char *text)
{
    double mine = -1, theirs = strtod(text, NULL);
    bool   ok = tn_parse_double(text, strlen(text), &mine);
    if (isinf(theirs) ? ok : !ok || memcmp(&mine, &theirs, sizeof mine))
        ck_abort_msg("%s: %a, expected %a (%d)", text, mine, theirs, ok);
}

static int significant(const char *text)
{
    int n = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (!n && *text == '0')) continue;
        n++, zeros = *text == '0' ? zeros + 1 : 0;
    }
    return n - zeros;
}

TEST(doubles_read_and_written)
{
    int  n = small() ? 3000 : tn_test_whole() ? 1000000 : 200000;
    char text[64], other[64];
    for (int i = 0; i < n; i++) {
        uint64_t bits = rnd();
        double   d, back;
        memcpy(&d, &bits, sizeof d);
        if (!isfinite(d)) continue;
        if (i % 4 == 0) d = (double)(int64_t)rnd() / 1e6; /* also numbers of the kind that people write */
        snprintf(text, sizeof text, "%.*g", i % 20 + 1, d);
        check_read(text);
        int len = tn_format_double(d, text);
        ck_assert_int_eq(len, (int)strlen(text));
        back = strtod(text, NULL);
        if (memcmp(&back, &d, sizeof d)) ck_abort_msg("%s for %.17g", text, d);
        if (!tn_parse_double(text, (size_t)len, &back) || memcmp(&back, &d, sizeof d)) ck_abort_msg("%s", text);
        int shown = significant(text);
        if (shown > 1 && i % 16 == 1) { /* one digit less does not read back */
            snprintf(other, sizeof other, "%.*e", shown - 2, d);
            if (strtod(other, NULL) == d) ck_abort_msg("%s is longer than %s", text, other);
        }
        if (shown == 17) continue; /* with all digits there is no choice */
        snprintf(other, sizeof other, "%.*e", shown ? shown - 1 : 0, d);
        if (strtod(other, NULL) == d && strtod(text, NULL) == d && i % 16 == 2) {
            long double a = fabsl(strtold(text, NULL) - (long double)d),
                        b = fabsl(strtold(other, NULL) - (long double)d);
            if (a > b) ck_abort_msg("%s is farther than %s", text, other);
        }
    }
}

TEST(hard_numbers)
{
    static const char *const hard[] = {
        "0",
        "-0",
        "0.0",
        "-0.0e5",
        "1",
        "10",
        "1e22",
        "1e23",
        "9007199254740993",
        "9007199254740992.5",
        "9007199254740993.0000000000000000000000000001",
        "5e-324",
        "4.9e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "2.47032822920623272088284396434110686182e-324",
        "2.2250738585072011e-308",
        "2.2250738585072012e-308",
        "2.2250738585072014e-308",
        "2.2250738585072011360574097967091319759348195463516456480234261097248222220210769455165295239081350879"
        "141491589130396211068700864386945946455276572074078206217433799881410632673292535522868813721490129811"
        "224514518898490572223072852551331557550159143974763979834118019993239625482890171070818506906306666559"
        "949382757725720157630626906633326475653000092458883164330377797918696120494973903778297049050510806099"
        "407302629371289589500035837999672072543043602840788957717961509455167482434710307026091446215722898802"
        "581825451803257070188608721131280795122334262883686223215037756666225039825343359745688844239002654981"
        "983854879482922068947216898310996983658468140228542433306603398508864458040010349339704275671864433837"
        "70486037861622771738545623065874679014086723327636718749999999999999999999999999999999999999e-308",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1.797693134862315807e308",
        "1.797693134862315808e308",
        "179769313486231580793728971405303415079934132710037826936173778980444968292764750946649017977587207096"
        "330286416692887910946555547851940402630657488671505820681908902000708383676273854845817711531764475730"
        "270069855571366959622842914819860834936475292719074168444365510704342711559699508093042880",
        "1e308",
        "1e309",
        "1e-323",
        "1e-324",
        "1e-400",
        "1e99999999999999999999",
        "1e-99999999999999999999",
        "0e99999999999999999999",
        "123456789012345678901234567890",
        "0.000000000000000000000000000000000000000000000000000000000001",
        "8.5e-23",
        "7.2057594037927933e16",
        "1.00000000000000011102230246251565404236316680908203125",
        "1.00000000000000011102230246251565404236316680908203124",
        "1.00000000000000011102230246251565404236316680908203126"};
    for (size_t i = 0; i < sizeof hard / sizeof *hard; i++) check_read(hard[i]);

    static const char *const none[] = {"",   " ",  "-",    "+",   ".",   "e5",  "1e",  "1e+",   "1 ",
                                       " 1", "1x", "0x10", "inf", "nan", "1,5", "--1", "1.2.3", "1e5.0"};
    for (size_t i = 0; i < sizeof none / sizeof *none; i++) {
        double v = 42;
        ck_assert_msg(!tn_parse_double(none[i], strlen(none[i]), &v), "%s", none[i]);
        ck_assert_double_eq(v, 42);
    }
    double v;
    ck_assert(tn_parse_double("+.5", 3, &v) && v == 0.5);
    ck_assert(tn_parse_double("5.", 2, &v) && v == 5);
    ck_assert(tn_parse_double("0012", 4, &v) && v == 12);
    ck_assert(!tn_parse_double(NULL, 1, &v));

    /* exactly half-way between two doubles, and slightly off in the 800th digit and far beyond */
    char text[2200];
    int  n = small() ? 100 : 5000;
    for (int i = 0; i < n; i++) {
        uint64_t bits = rnd() >> 1, up = bits + 1;
        double   a, b;
        memcpy(&a, &bits, sizeof a), memcpy(&b, &up, sizeof b);
        if (!isfinite(b)) continue;
        snprintf(text, sizeof text, "%.780Le", ((long double)a + (long double)b) / 2);
        check_read(text);
        char exponent[16], *e = strchr(text, 'e');
        snprintf(exponent, sizeof exponent, "%s", e);
        for (int zeros = 0; zeros < 1200; zeros += 400) {
            memset(e, '0', (size_t)zeros);
            snprintf(e + zeros, sizeof text - (size_t)(e + zeros - text), "1%s", exponent);
            check_read(text);
        }
    }
    /* every power of two, where the gap below is smaller; every power of ten */
    for (int e = -1074; e < 1024; e++) {
        double d = ldexp(1, e), back;
        tn_format_double(d, text);
        ck_assert(tn_parse_double(text, strlen(text), &back) && back == d && strtod(text, NULL) == d);
    }
    for (int e = -330; e < 312; e++) {
        snprintf(text, sizeof text, "1e%d", e);
        check_read(text);
        snprintf(text, sizeof text, "9.999999999999999e%d", e);
        check_read(text);
    }
}

TEST(written_as_expected)
{
    static const struct {
        double      v;
        const char *text;
    } rows[] = {{0, "0.0"},
                {-0.0, "-0.0"},
                {1, "1.0"},
                {-1.5, "-1.5"},
                {0.1, "0.1"},
                {1e15, "1000000000000000.0"},
                {1e16, "1e+16"},
                {123456789012345680, "1.2345678901234568e+17"},
                {0.0001, "0.0001"},
                {0.00001, "1e-05"},
                {1.5e-7, "1.5e-07"},
                {5e-324, "5e-324"},
                {DBL_MAX, "1.7976931348623157e+308"},
                {DBL_MIN, "2.2250738585072014e-308"},
                {9007199254740992, "9007199254740992.0"},
                {5.684341886080802e-14, "5.684341886080802e-14"},
                {1e23, "1e+23"},
                {2.0 / 3, "0.6666666666666666"},
                {INFINITY, "inf"},
                {-INFINITY, "-inf"},
                {NAN, "nan"},
                {100, "100.0"},
                {1e100, "1e+100"}};
    char text[32];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_int_eq(tn_format_double(rows[i].v, text), (int)strlen(rows[i].text));
        ck_assert_str_eq(text, rows[i].text);
    }
    static const struct {
        float       v;
        const char *text;
    } floats[] = {{0.1f, "0.1"},
                  {16777216, "16777216.0"},
                  {FLT_MAX, "3.4028235e+38"},
                  {1e-45f, "1e-45"},
                  {1.0f / 3, "0.33333334"},
                  {-0.0f, "-0.0"},
                  {INFINITY, "inf"},
                  {NAN, "nan"},
                  {-INFINITY, "-inf"}};
    for (size_t i = 0; i < sizeof floats / sizeof *floats; i++) {
        tn_format_float(floats[i].v, text);
        ck_assert_str_eq(text, floats[i].text);
    }
    int n = small() ? 2000 : 200000;
    for (int i = 0; i < n; i++) {
        uint32_t bits = (uint32_t)rnd();
        float    f, back;
        memcpy(&f, &bits, sizeof f);
        if (!isfinite(f)) continue;
        tn_format_float(f, text);
        back = strtof(text, NULL);
        if (memcmp(&f, &back, sizeof f)) ck_abort_msg("%s for %a", text, (double)f);
        if (significant(text) > 9) ck_abort_msg("%s is too long", text);
    }
}

/* The program's rounding mode has no effect on texts. */
TEST(rounding_modes_change_nothing)
{
    static const int         modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    static const char *const texts[] = {"0.1",   "-0.1", "1e23", "123456789012345678", "1.7976931348623157e308",
                                        "3e-320"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double expected, v[3];
        char   text[3][32];
        ck_assert(tn_parse_double(texts[i], strlen(texts[i]), &expected));
        for (int m = 0; m < 3; m++) {
            fesetround(modes[m]);
            tn_parse_double(texts[i], strlen(texts[i]), &v[m]);
            tn_format_double(v[m], text[m]);
            bool kept = fegetround() == modes[m];
            fesetround(FE_TONEAREST);
            ck_assert(kept);
        }
        for (int m = 0; m < 3; m++) {
            ck_assert(!memcmp(&v[m], &expected, sizeof expected));
            ck_assert_str_eq(text[m], text[0]);
            ck_assert(strtod(text[m], NULL) == expected);
        }
    }
}
