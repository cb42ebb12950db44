/* kv_cache_rows.c — reorders the rows of a cache in place: row i becomes a copy of row from[i]. Beams of a text share
 * their memory, which stays where it is while one of them needs it. */
#include "nn/attention/kv_cache_private.h"

#include <string.h>

/* A row that no other row still has to read is overwritten at once, and then perhaps the row that it was copied from.
 * What remains are cycles: one row of each waits in the spare row. So every row is copied once. */
int64_t tn__plan_moves(int64_t *from, int64_t n, int64_t *readers, tn__cache_move *to)
{
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        if (from[i] != i) readers[from[i]]++;
    for (int64_t i = 0; i < n; i++)
        for (int64_t row = i, source; row < n && from[row] != row && !readers[row]; row = source) {
            source = from[row];
            to[count++] = (tn__cache_move){row, source, 0};
            readers[source]--, from[row] = row;
        }
    for (int64_t i = 0; i < n; i++) {
        if (from[i] == i) continue;
        to[count++] = (tn__cache_move){-1, i, 0};
        for (int64_t row = i, source; from[row] != row; row = source) {
            source = from[row];
            to[count++] = (tn__cache_move){row, source == i ? -1 : source, 0};
            from[row] = row;
        }
    }
    return count;
}

/* Beams of a text have a common past. A copy starts where the rows begin to differ: at position p two rows with the
 * same origin, the row that they were when p was read, are the same up to p. */
void tn__plan_copies(int64_t *origin, int64_t batch, int64_t length, int64_t filled, tn__cache_move *move,
                     int64_t moves)
{
    for (int64_t i = 0; i < moves; i++) {
        int64_t       *to = origin + (move[i].to < 0 ? batch : move[i].to) * length, first = filled;
        const int64_t *from = origin + (move[i].from < 0 ? batch : move[i].from) * length;
        while (first > 0 && (move[i].to < 0 || to[first - 1] != from[first - 1])) first--;
        memcpy(to + first, from + first, (size_t)(filled - first) * sizeof *to);
        move[i].first = first;
    }
}

bool tn__move_rows(tn_tensor *t, int64_t layer, int64_t filled, const tn__cache_move *move, int64_t moves, char *spare)
{
    const tn_shape s = tn_shape_of(t); /* [layers, batch, heads, length, width] */
    const size_t   one = tn_dtype_size(tn_dtype_of(t)) * (size_t)s.d[4], head = one * (size_t)s.d[3];
    const size_t   heads = (size_t)s.d[2], row = head * heads, used = one * (size_t)filled;
    char          *base = tn_data_mut(t);
    if (!base) return false;
    base += (size_t)layer * (size_t)s.d[1] * row;
    for (int64_t i = 0; i < moves; i++) {
        char        *to = move[i].to < 0 ? spare : base + (size_t)move[i].to * row;
        const char  *from = move[i].from < 0 ? spare : base + (size_t)move[i].from * row;
        const size_t skip = one * (size_t)(move[i].first < filled ? move[i].first : filled);
        for (size_t h = 0; h < heads; h++) memcpy(to + h * head + skip, from + h * head + skip, used - skip);
    }
    return true;
}

int64_t tn__memories_of(const int64_t *memory_of, int64_t *from, int64_t n, int64_t batch, int64_t *source)
{
    int64_t *number = source + batch, count = 0;
    for (int64_t i = 0; i < batch; i++) number[i] = -1;
    for (int64_t i = 0; i < n; i++) {
        const int64_t of = memory_of[from[i]];
        if (number[of] < 0) number[of] = count, source[count++] = of;
        from[i] = number[of];
    }
    return count;
}

void tn__move_up(tn_tensor *t, int64_t layer, int64_t rows, int64_t to, int64_t from, int64_t n)
{
    const tn_shape s = tn_shape_of(t);
    const size_t   one = tn_dtype_size(tn_dtype_of(t)) * (size_t)s.d[4], head = one * (size_t)s.d[3];
    char          *base = tn_data_mut(t);
    if (!base) return;
    base += (size_t)(layer * s.d[1] * s.d[2]) * head;
    for (int64_t i = 0; i < rows * s.d[2]; i++, base += head)
        memmove(base + (size_t)to * one, base + (size_t)from * one, (size_t)n * one);
}

int64_t tn__sharing(const int64_t *memory_of, int64_t rows)
{
    const int64_t memories = rows > 0 ? memory_of[rows - 1] + 1 : 1, each = rows > 0 ? rows / memories : 1;
    for (int64_t i = 0; i < rows; i++)
        if (rows % memories || memory_of[i] != i / each) return 0;
    return each;
}
