#!/usr/bin/env bash
# Public names must start with tn_ or TN_, private ones with tn__ or TN__, so that they do not collide with names of the
# user. tn_x_new(.…) takes a tn_x_config, a call tn_x(…) takes a tn_x_args, and a name has one meaning. docs/adr/0023
# gives the reasons and the exceptions.
. "$(dirname "$0")/common.sh"
need nm

# Names of both a module struct and an op, as nn.Linear and F.linear in PyTorch. C distinguishes them: the op is a macro
# with arguments, which is expanded only before a parenthesis.
module_and_op='tn_linear tn_dropout tn_embedding tn_flatten tn_layer_norm tn_rms_norm tn_conv1d tn_conv2d'

given() # INCLUDES HEADER FOLDER: a line "kind name" for each name that the headers below FOLDER declare
{
    echo "#include <$2>" >given.c
    "${CC:-cc}" -std=c11 -E -dD -I "$1" given.c >given.i
    awk -v root="$3" -f "$root/tests/project/names.awk" given.i
}

judged() # reads these lines and prints findings
{
    sort -u | awk -v two=" $module_and_op " '
        $2 !~ /^(tn|TN|TENON)_[A-Za-z]/ { print $1 " " $2 " does not begin with tn_ or TN_" }
        $1 == "type" && $2 ~ /_(option|options|opts|settings|params|parameters|arguments|how)$/ {
            print "type " $2 ": what an object is made of ends with _config, what a call takes with _args"
        }
        $1 == "type" { type[$2] = 1 }
        $1 == "call" { call[$2] = 1 }
        $1 == "made" { # macro and struct
            new = $2 ~ /^tn_[a-z0-9_]+_(new|open|load)$/
            if (new ? $3 !~ /_config$/ : $3 !~ /_args$/)
                print $2 " takes a " $3 ": an object is made of a _config, a call takes an _args"
        }
        END {
            for (t in type)
                if (t in call && index(two, " " t " ") == 0) print t " is a type and a macro"
        }'
}

fresh names
given "$build/include" tenon/extras.h "$root" >ours
[ "$(wc -l <ours)" -gt 1000 ] || wrong "only $(wc -l <ours) names were found"
findings < <(judged <ours)
for name in $module_and_op; do
    grep -qx "type $name" ours && grep -qx "call $name" ours || wrong "$name is no longer a type and a macro"
done

# Private names: external symbols of the static library that are in no public header.
awk '{ print $2 }' ours | sort -u >public
private()
{
    awk '$3 ~ /^[TDBRVGSCi]$/ && $2 !~ /^(tn__[a-z]|DW\.ref\.)/ { print $2 " " $1 }'
}
findings < <(symbols "$build/CMakeFiles" "$root" | private | sort | join -v 1 - public |
    sed -E 's/(.*) (.*)/\2: \1 is global and in no public header, but does not begin with tn__/')

# Macros, enumerators and types, which are not in objects: each TN_X or tn_x in the library's sources must be public.
# The name of a class derives from its public type (tn_linear_class); text next to ## is a part of a name. (Tests have
# helpers with such names, tn_case_new and others.)
worded() # FILE...: a line "name file" for each such word outside of comments and strings
{
    awk '
    FNR == 1 { comment = 0 }
    {
        line = $0
        if (comment) { if (!sub(/^.*\*\//, "", line)) next; comment = 0 }
        gsub(/\\./, "", line); gsub(/"[^"]*"/, "", line)
        gsub(/\/\*([^*]|\*[^\/])*\*\//, "", line)
        if (sub(/\/\*.*$/, "", line)) comment = 1
        gsub(/[A-Za-z0-9_]+ *##|## *[A-Za-z0-9_]+/, "", line)
        while (match(line, /[A-Za-z0-9_]+/)) {
            word = substr(line, RSTART, RLENGTH)
            line = substr(line, RSTART + RLENGTH)
            sub(/_class$/, "", word)
            if (word ~ /^(TN_([^_]|$)|tn_[^_])/) print word, FILENAME
        }
    }' "$@" | sort -u
}
cd "$root"
mapfile -t sources < <(files -name '*.[ch]' | grep -E "^($(folders | paste -sd'|'))/" |
    grep -v '^extras/tests/' | grep -vxFf <(tr ' ' '\n' <<<"$TENON_HEADERS"))
[ "${#sources[@]}" -gt 300 ] || wrong "only ${#sources[@]} sources were found"
cd - >/dev/null
findings < <(cd "$root" && worded "${sources[@]}" | join -v 1 - "$OLDPWD/public" |
    sed -E 's/(.*) (.*)/\2: \1 is in no public header, but does not begin with tn__ or TN__/')

# Test of the check: planted faults must be found.
mkdir -p planted
cat >planted/door.h <<'PLANTED'
typedef struct { int zero_; } tn_thing_options;
typedef struct { int a; } loose;
enum { TN_GOOD, BAD };
static inline int helper(void) { return TN_GOOD; }
typedef struct { int zero_; } tn_two;
#define tn_two(...) tn_two_run((tn_two){.zero_ = 0, __VA_ARGS__})
#define MACRO 1
int tn_fine(const tn_two *t, loose (*callback)(int named));
PLANTED
given "$PWD" planted/door.h "$PWD/planted" | judged >said
for name in tn_thing_options loose BAD helper 'tn_two takes a' 'tn_two is a type' MACRO; do
    grep -q "$name" said || wrong "names.sh does not see $name, which was planted for it"
done
[ "$(wc -l <said)" = 7 ] || wrong "names.sh sees faults where there are none: $(cat said)"
cat >planted/hidden.c <<'PLANTED'
/* TN_SAID is a comment's */
enum { TN__FINE, TN_SEEN = sizeof "TN_TEXT" };
#define TN_(name) TN__PASTED_##name
static int tn_linear_class, tn_seen_class;
PLANTED
[ "$(worded planted/hidden.c | join -v 1 - public | sed 's/ .*//' | tr '\n' ' ')" = 'TN_ TN_SEEN tn_seen ' ] ||
    wrong "names.sh does not see the private names planted: $(worded planted/hidden.c)"
[ "$(echo 'nn/x.c tn_hidden T' | private)" = "tn_hidden nn/x.c" ] || wrong "names.sh does not see the symbol planted"
exit $wrong
