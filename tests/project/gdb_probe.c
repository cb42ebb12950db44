/* gdb_probe.c — a program with tensors for gdb to print; gdb.sh compiles it with debug information. */
#include "core/tensor/tensor.h"

__attribute__((noinline)) void look_here(tn_tensor *t, tn_tensor *big, tn_tensor *half, tn_tensor *turned,
                                         tn_tensor *no);

__attribute__((noinline)) void look_here(tn_tensor *t, tn_tensor *big, tn_tensor *half, tn_tensor *turned,
                                         tn_tensor *no)
{
    __asm__ volatile("" ::"r"(t), "r"(big), "r"(half), "r"(turned), "r"(no) : "memory");
}

int main(void)
{
    static const float   values[] = {0.5f, -1, 2, 3, 4.25f, 100000};
    static const int64_t bits[] = {1, 0, 1};
    tn_scope             s = tn_scope_begin();
    tn_tensor           *t = tn_set_name(tn_from_data(TN_F32, TN_SHAPE(2, 3), values), "weight");
    tn_tensor           *big = tn_arange(1000), *half = tn_full_of(TN_BF16, TN_SCALAR, 1.5);
    tn__layout           l = t->l;
    l.shape = TN_SHAPE(3, 2);
    l.stride[0] = 1;
    l.stride[1] = 3;
    tn_tensor *mask = tn_empty_of(TN_BOOL, TN_SHAPE(3));
    for (int i = 0; i < 3; i++) tn_set_i64(mask, i, bits[i]);
    look_here(t, big, half, tn__alias(t, &l), NULL);
    look_here(mask, NULL, NULL, NULL, NULL);
    tn_scope_end(s);
    return tn_error() != TN_OK;
}
