/* gunzip.c — decompresses gzip with zlib, which libpng brings along (TN__PNG). */
#include "extras/images/images_private.h"

#ifdef TN__PNG

#include <zlib.h>

static voidpf get_memory(voidpf user, uInt n, uInt size)
{
    (void)user;
    const size_t   bytes = (size_t)n * size + 64; /* the block's size is stored before it */
    unsigned char *p = tn_mem_get(bytes);
    if (!p) return NULL;
    memcpy(p, &bytes, sizeof bytes);
    return p + 64;
}
static void put_memory(voidpf user, voidpf p)
{
    size_t bytes;
    (void)user;
    memcpy(&bytes, (unsigned char *)p - 64, sizeof bytes);
    tn_mem_put((unsigned char *)p - 64, bytes);
}

bool tn__gunzip(const char *label, const unsigned char *data, size_t size, void *to, size_t bytes, bool some)
{
    z_stream z = {.zalloc = get_memory, .zfree = put_memory};
    z.next_in = (z_const Bytef *)data, z.avail_in = (uInt)size;
    z.next_out = to, z.avail_out = (uInt)bytes;
    if (inflateInit2(&z, 15 + 16) != Z_OK) return tn_raise_false(TN_ENOMEM, "%s: zlib could not be initialised", label);
    int  r = inflate(&z, Z_NO_FLUSH);
    bool whole = !z.avail_out;
    if (whole && !some && r == Z_OK) { /* read to the end, which has a checksum */
        unsigned char more;
        z.next_out = &more, z.avail_out = 1;
        r = inflate(&z, Z_NO_FLUSH);
        if (!z.avail_out) r = Z_BUF_ERROR;
    }
    if (tn_error() != TN_OK) whole = false;
    else if (!whole && (r == Z_OK || r == Z_BUF_ERROR || r == Z_STREAM_END))
        tn_raise(TN_EFORMAT, "%s: the file holds fewer than the %zu bytes that its header specifies", label, bytes);
    else if (!whole || (!some && r == Z_DATA_ERROR))
        tn_raise(TN_EFORMAT, "%s: the compressed data are damaged", label), whole = false;
    else if (!some && (r != Z_STREAM_END || z.avail_in))
        tn_raise(TN_EFORMAT, "%s: the file %s", label,
                 r != Z_STREAM_END ? "does not end where its header specifies" : "holds more than one compressed file"),
            whole = false;
    inflateEnd(&z);
    return whole;
}

#else

bool tn__gunzip(const char *label, const unsigned char *data, size_t size, void *to, size_t bytes, bool some)
{
    (void)data, (void)size, (void)to, (void)bytes, (void)some;
    return tn_raise_false(
        TN_EUNSUPPORTED,
        "%s: the file is compressed by gzip, but Tenon was built without libpng and zlib; install them (Debian: "
        "libpng-dev) and configure again, or unpack the file with gunzip",
        label);
}

#endif
