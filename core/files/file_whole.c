/* file_whole.c — reading and writing all bytes of a file at once, and adding some to its end, for users. */
#include "core/files/io.h"
#include "core/tensor/tensor.h"

tn_tensor *tn_file_read(const char *path, int64_t max_bytes)
{
    if (tn__blocked()) return NULL;
    char       label[TN__LABEL];
    tn__source s;
    if (!tn__source_open(&s, tn__label(label, "tn_file_read", path), path)) return NULL;
    tn_tensor *t = NULL;
    if (s.size > max_bytes)
        tn_raise(TN_EINVAL, "%s: it has %lld bytes, more than the limit of %lld", label, (long long)s.size,
                 (long long)max_bytes);
    else if ((t = tn__new_owned(TN_U8, (tn_shape){.n = 1, .d = {s.size}})) &&
             !tn__source_read(&s, tn__ptr(t), 0, (size_t)s.size))
        tn_drop(t), t = NULL;
    tn__source_close(&s);
    return tn__scoped(t);
}

tn_status tn_file_write(const char *path, const void *data, size_t bytes)
{
    if (tn__blocked()) return tn__self.error;
    char     label[TN__LABEL];
    tn__sink s;
    tn__label(label, "tn_file_write", path);
    if (!data && bytes) return tn_raise(TN_EINVAL, "%s: data is NULL, but bytes is %zu", label, bytes);
    if (!tn__sink_open(&s, label, path, (int64_t)bytes)) return tn__self.error;
    return tn__sink_end(&s, tn__sink_write(&s, data, bytes));
}

tn_status tn_file_append(const char *path, const void *data, size_t bytes)
{
    if (tn__blocked()) return tn__self.error;
    char     label[TN__LABEL];
    tn__sink s;
    tn__label(label, "tn_file_append", path);
    if (!data && bytes) return tn_raise(TN_EINVAL, "%s: data is NULL, but bytes is %zu", label, bytes);
    if (tn__sink_append(&s, label, path)) tn__sink_write(&s, data, bytes), tn__sink_end(&s, false);
    return tn__self.error;
}
