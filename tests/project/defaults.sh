#!/usr/bin/env bash
# The defaults of a config are in a list, TN_X_DEFAULTS, for C, and again at its members, TN_IS, for C++. Checks that
# both give the same bytes, for every struct that is filled by keywords.
. "$(dirname "$0")/common.sh"
need cc c++
fresh defaults

# The types and their lists: TN_X_DEFAULTS belongs to tn_x_config or tn_x. A type without a list has zeros.
for header in $TENON_HEADERS; do
    sed -nE '/ tn_(shape|dims);/d
        s/^\} TN_KEYWORDS_ONLY +(tn_[a-z0-9_]+);.*/type \1/p
        s/^#define (TN_[A-Z0-9_]+_DEFAULTS)\b.*/list \1/p' \
        "$root/$header"
done >found
[ "$(grep -c ^type found)" -ge 90 ] || wrong "only $(grep -c ^type found) structs with keywords were found"
{
    echo '#include "both.h"'
    echo 'const row rows_in_c[] = {'
    awk '$1 == "list" { lists[$2] = 1 } $1 == "type" { types[n++] = $2 }
         END { for (i = 0; i < n; i++) {
                   name = types[i]; sub(/_config$/, "", name); name = toupper(name) "_DEFAULTS"
                   print types[i], name in lists ? name : ".zero_ = 0" } }' found |
        while read -r type list; do echo "    {\"$type\", sizeof($type), &($type){$list}},"; done
    echo '};'
} >in_c.c
{
    echo '#include "both.h"'
    awk '$1 == "type" { print "static const " $2 " c_" $2 " = " $2 "{};" }' found
    echo 'const row rows_in_cpp[] = {'
    awk '$1 == "type" { print "    {\"" $2 "\", sizeof(" $2 "), &c_" $2 "}," }' found
    echo '};'
    echo 'const size_t rows = sizeof rows_in_cpp / sizeof *rows_in_cpp;'
} >in_cpp.cpp
cat >both.h <<'END'
#include <tenon/extras.h>
#include <string.h>
#ifdef __cplusplus
extern "C" {
#endif
typedef struct {
    const char *name;
    size_t      bytes;
    const void *at;
} row;
extern const row rows_in_c[], rows_in_cpp[];
extern const size_t rows;
#ifdef __cplusplus
}
#endif
END
cat >main.c <<'END'
#include "both.h"
#include <stdio.h>
int main(void)
{
    int differ = 0;
    for (size_t i = 0; i < rows; i++) {
        const row *c = &rows_in_c[i], *p = &rows_in_cpp[i];
        if (!strcmp(c->name, p->name) && c->bytes == p->bytes && !memcmp(c->at, p->at, c->bytes)) continue;
        printf("%s: C's defaults are not C++'s\n", c->name);
        differ = 1;
    }
    return differ;
}
END
same() # C-COMPILER C++-COMPILER: prints the structs that differ
{
    "$1" -std=c11 -I "$build/include" -c in_c.c main.c && "$2" -std=c++20 -I "$build/include" -c in_cpp.cpp &&
        "$2" in_c.o main.o in_cpp.o -o "same_$1" "$TENON_A" -pthread -lm -lutf8proc >out 2>&1 && "./same_$1"
}
for pair in cc:c++ clang:clang++; do
    command -v "${pair#*:}" >/dev/null || continue
    findings < <(same "${pair%:*}" "${pair#*:}" 2>&1 || echo "$pair: see above")
done

# Test of the check: a planted difference must be found.
sed -i 's/{TN_DROPOUT_DEFAULTS}/{.p = 0.25}/' in_c.c
said=$(same cc c++ 2>&1) || true
[[ $said == *tn_dropout_config* ]] || wrong "defaults.sh does not see the fault planted for it"
exit $wrong
