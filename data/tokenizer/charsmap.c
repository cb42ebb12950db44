/* charsmap.c — SentencePiece's compiled rules for characters (NFKC and more): a double array as in Darts, whose values
 * are offsets in a list of texts. A unit holds, from the lowest bit: 8 bits of label, a flag for a value, a flag for 8
 * more zero bits of the offset, the offset; or, with the highest bit set, a value. The file is not trusted: each step
 * is checked. */
#include "data/tokenizer/tokenizer_private.h"
#include "core/base/toolbox.h"

#include <string.h>

static uint32_t label(uint32_t unit) { return unit & (0x80000000u | 0xff); }
static uint32_t offset(uint32_t unit) { return unit >> 10 << ((unit & 0x200) >> 6); }
static bool     has_value(uint32_t unit) { return unit >> 8 & 1; }

static uint32_t little_endian(const unsigned char *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

const char *tn__charsmap_find(const tn__charsmap *m, const char *text, size_t n, bool longest, size_t *length)
{
    if (!m->units || !n) return NULL;
    if ((unsigned char)*text < 128 && m->plain[(unsigned char)*text] && (n == 1 || (unsigned char)text[1] < 128))
        return NULL;
    const char *found = NULL;
    size_t      at = offset(m->unit[0]);
    for (size_t i = 0; i < n; i++) {
        const unsigned char byte = (unsigned char)text[i];
        if ((at ^= byte) >= m->units || label(m->unit[at]) != byte) break;
        const uint32_t unit = m->unit[at];
        if ((at ^= offset(unit)) >= m->units) break;
        if (!has_value(unit)) continue;
        const uint32_t value = m->unit[at] & 0x7fffffff;
        if (value > m->bytes) break; /* the NUL is at m->bytes */
        found = m->text + value, *length = i + 1;
        if (!longest) break;
    }
    return found;
}

bool tn__charsmap_read(tn__charsmap *m, const char *caller, const void *blob, size_t bytes)
{
    if (!bytes) return true;
    const unsigned char *p = blob;
    const size_t         trie = bytes >= 4 ? little_endian(p) : 0;
    if (bytes < 8 || trie % 4 || trie < 4 || trie > bytes - 4)
        return tn_raise_false(TN_EFORMAT,
                              "%s: precompiled_charsmap has %zu bytes, its table %zu; it is truncated or damaged",
                              caller, bytes, trie);
    m->units = trie / 4, m->bytes = bytes - 4 - trie;
    m->unit = tn__mem_get(trie);
    m->text = m->unit ? tn__mem_get(m->bytes + 1) : NULL;
    if (!m->text) return false;
    for (size_t i = 0; i < m->units; i++) m->unit[i] = little_endian(p + 4 + 4 * i);
    memcpy(m->text, p + 4 + trie, m->bytes);
    m->text[m->bytes] = 0;
    if (tn_utf8_valid(m->text, m->bytes) < m->bytes)
        return tn_raise_false(TN_EFORMAT, "%s: the texts of precompiled_charsmap are not UTF-8", caller);
    bool plain[128] = {0};
    for (int c = 1; c < 128; c++) {
        plain[c] = true;
        for (int next = 0; next < 128 && plain[c]; next++) {
            const char two[2] = {(char)c, (char)next};
            size_t     length;
            plain[c] = !tn__charsmap_find(m, two, 2, false, &length);
        }
        /* three ASCII characters: no known rule starts like this, but a file may have one */
        size_t at = offset(m->unit[0]) ^ (size_t)c;
        if (at >= m->units || label(m->unit[at]) != (uint32_t)c) continue;
        const size_t base = at ^ offset(m->unit[at]);
        for (size_t next = 1; next < 128 && plain[c]; next++)
            plain[c] = (base ^ next) >= m->units || label(m->unit[base ^ next]) != next;
    }
    memcpy(m->plain, plain, sizeof plain);
    return true;
}

bool tn__charsmap_blob(const tn__charsmap *m, tn_string *to)
{
    for (size_t i = 0; m->units && i <= m->units; i++) { /* the size of the table, then the table */
        const uint32_t v = i ? m->unit[i - 1] : (uint32_t)(4 * m->units);
        const char     byte[4] = {(char)v, (char)(v >> 8), (char)(v >> 16), (char)(v >> 24)};
        if (tn_string_add(to, (tn_text){byte, 4}) != TN_OK) return false;
    }
    return !m->units || tn_string_add(to, (tn_text){m->text, m->bytes}) == TN_OK;
}

void tn__charsmap_free(tn__charsmap *m)
{
    tn__mem_put(m->unit, m->units * sizeof *m->unit);
    if (m->text) tn__mem_put(m->text, m->bytes + 1);
    *m = (tn__charsmap){0};
}
