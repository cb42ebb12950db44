/* planted.c — a use after free that AddressSanitizer and valgrind must find: a label's name is read after its labels
 * are freed and their memory could be reused for others. Without a sanitizer, a cache of freed memory hides it. */
#include <tenon/tenon.h>

#include <stdio.h>

int main(void)
{
    const char *const names[] = {"first", "second"}, *const others[] = {"third", "fourth"};
    tn_labels  *labels = tn_labels_new(2, names);
    const char *name = tn_labels_names(labels)[1];
    tn_labels_free(labels);
    labels = tn_labels_new(2, others);
    printf("%s\n", name);
    tn_labels_free(labels);
    return 0;
}
