/* safetensors_checksums.c — a checksum of each tensor, in its file's metadata: "tenon.sums" has 16 digits for each, in
 * the header's order. It covers the tensor's name, type, shape and bytes. tn_hf_write writes checksums, and reading a
 * tensor compares its checksum if there is one; other programs' files have none. Big-endian machines neither write nor
 * compare them, because their words would differ. */
#include "core/files/safetensors.h"
#include "core/base/checksums.h"
#include "core/base/memory.h"
#include "core/base/thread.h"
#include "core/tensor/tensor.h"

#include <stdio.h>
#include <string.h>

static const char key[] = "tenon.sums";
enum { DIGITS = 16 };

size_t tn__st_checksums_bytes(uint32_t count) { return (size_t)count * DIGITS + 1; }

static bool lowest_first(void)
{
    const uint16_t one = 1;
    unsigned char  first;
    memcpy(&first, &one, 1);
    return first == 1;
}

static void sum_of(const char *name, const tn_tensor *t, char to[DIGITS + 1])
{
    uint64_t sum = tn__fnv1a(TN__FNV1A, name, strlen(name) + 1);
    sum = tn__fnv1a_i64(sum, (int64_t)t->dtype);
    for (int d = 0; d < t->l.shape.n; d++) sum = tn__fnv1a_i64(sum, t->l.shape.d[d]);
    sum = tn__fnv1a_words(sum, tn__ptr(t), (size_t)tn_shape_numel(t->l.shape) * tn__dtype_bytes(t->dtype));
    snprintf(to, DIGITS + 1, "%016llx", (unsigned long long)sum);
}

char *tn__st_checksums(const struct tn__st_item *items, uint32_t count, const uint32_t *order, const char **named)
{
    char *all = lowest_first() && count ? tn__mem_get(tn__st_checksums_bytes(count)) : NULL;
    for (uint32_t i = 0; all && i < count && tn__self.error == TN_OK; i++) {
        const tn_tensor *t = items[order[i]].tensor;
        tn_tensor       *copy = tn__layout_contiguous(&t->l) ? NULL : tn__new_owned(t->dtype, t->l.shape);
        if (copy) tn__copy(copy, t);
        if (tn__self.error == TN_OK) sum_of(items[order[i]].name, copy ? copy : t, all + (size_t)i * DIGITS);
        tn_drop(copy);
    }
    *named = key;
    return all;
}

bool tn__st_take_checksums(tn_safetensors *f)
{
    const int64_t at = lowest_first() ? tn__names_find(&f->keys, key, strlen(key)) : -1;
    if (at < 0) return true;
    const char *sums = f->pairs[at].value;
    if (strlen(sums) != (size_t)f->count * DIGITS)
        return tn_raise_false(
            TN_EFORMAT,
            "%s: the file is damaged: %s in its metadata has %zu digits, expected %d for each of its %u tensors",
            f->label, key, strlen(sums), DIGITS, f->count);
    for (uint32_t i = 0; i < f->count; i++) f->entries[i].sum = sums + (size_t)i * DIGITS;
    return true;
}

bool tn__st_checksum_ok(const char *label, const tn__st_entry *e, const tn_tensor *t)
{
    char is[DIGITS + 1], shown[TN__QUOTED];
    if (!e->sum || !t) return true;
    sum_of(e->name, t, is);
    if (!memcmp(is, e->sum, DIGITS)) return true;
    return tn_raise_false(
        TN_EFORMAT,
        "%s: tensor %s is damaged: its checksum is %s, expected %.16s; copy the file from its source again, or "
        "create it again; a program that changes tensors must remove \"%s\" from the metadata",
        label, tn__quote(shown, e->name, e->name_bytes, 100), is, e->sum, key);
}
