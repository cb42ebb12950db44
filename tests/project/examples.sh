#!/usr/bin/env bash
# The examples in the comments of public headers must compile without warnings. An example is text that is indented by
# at least five blanks after the comment's star and follows an empty line or a line that ends with a colon; an empty
# line in it starts another part. A part that defines types or functions is compiled at file level, any other part as
# the body of a function. A line with `...` alone, or with words between two of them, is an omission. examples.h
# declares names that examples use without declaring them: x, net, opt. Only headers of extras have <tenon/extras.h>.
. "$(dirname "$0")/common.sh"
fresh examples

# program HEADER NAME: one C file of all examples of HEADER, with its line numbers, NAME in the compiler's messages
program()
{
    awk -v name="$2" '
    function end()
    {
        if (!lines) return
        if (code ~ /^ *(typedef|static|enum|struct|TN_FORWARD|TN_MODULE)/)
            printf "#line %d \"%s\"\n%s", from, name, code
        else
            printf "static void example_%d(void)\n{\n#line %d \"%s\"\n%s}\n", from, from, name, code
        lines = 0
        code = ""
    }
    BEGIN {
        if (name ~ /^extras\//) print "#include <tenon/extras.h>"
        print "#include \"examples.h\""
    }
    {
        last = /\*\/[ \t]*$/
        text = $0
        sub(/[ \t]*\*\/[ \t]*$/, "", text)
    }
    /^\/\*/ { inside = 1 } # a comment that starts on its own line
    inside && text ~ /^ \*     / && (lines || opens) {
        sub(/^ \*     /, "", text)
        if (text ~ /^ *\.\.\.([^.].*\.\.\.)?$/) text = ""
        if (!lines++) from = FNR
        code = code text "\n"
        opens = 0
        if (last) { end(); inside = 0 }
        next
    }
    { end(); opens = text ~ /^ \*$/ || text ~ /:$/ }
    last { inside = 0 }
    END { end() }' "$1"
}

# check HEADER NAME: prints the compiler's messages about the examples; writes their number to the file count
check()
{
    local file compiler
    file=$(tr '/.' '__' <<<"$2").c
    program "$1" "$2" >"$file"
    grep -c '^#line' "$file" >count || return 0
    for compiler in gcc clang; do
        command -v $compiler >/dev/null || continue
        $compiler -std=c11 -Wall -Wextra -Wpedantic -Werror -Wno-unused -Wno-unused-parameter -fsyntax-only \
            -I "$build/include" -I "$root/tests/project" "$file" 2>&1 |
            grep -E "(^$2|/examples\.h):[0-9]+.*(error|warning):" || true
    done
}

examples=0
for header in $TENON_HEADERS; do
    findings < <(check "$root/$header" "$header")
    examples=$((examples + $(cat count)))
done
[ $examples -ge 30 ] ||
    wrong "only $examples examples were found: they are written otherwise than examples.sh reads them"
echo "$examples examples"

# Test of the check: planted faults must be found, and text that is not an example must be ignored. A call of extras is
# a fault outside of extras.
cat >planted.h <<'PLANTED'
/* planted.h — a heading.
 *
 *     tn_gpt *gpt = tn_gpt_load("gpt2");
 *     tn_tensor *l = tn_gpt_loss(gpt, ids);
 *
 *   - a list,
 *     which goes on,
 *
 *     y = tn_relu(x)
 * and then:
 *     static tn_tensor *twice(tn_tensor *t) { return tn_add(t, nobody_knows_it); }
 *
 *     tn_report *report = tn_report_new("A run"); */
PLANTED
# planted NAME LINE...: as a header of that NAME, the planted one has faults in these lines and no others
planted()
{
    local name=$1 line
    shift
    check planted.h "$name" >said
    for line; do
        grep -q "^$name:$line:" said || wrong "examples.sh misses a planted fault in line $line of $name"
    done
    grep -vE "^$name:($(tr ' ' '|' <<<"$*")):" said && wrong "examples.sh sees faults in $name where there are none"
    return 0
}
planted nn/planted.h 4 9 11 13
planted extras/planted.h 4 9 11
exit $wrong
