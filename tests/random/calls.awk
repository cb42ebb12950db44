# calls.awk — writes a function `call_NAME` for each public function that the headers declare, and a table of all of
# them. careless.c includes the output. For each type of arguments there is one function that returns
# ARG(type, name, number): that macro lists all types, and once per argument it would take a compiler half a minute.
#
# Omitted: functions that set the allocator or the file operations of the whole process, and the one that starts MPI.
#
#     awk -v out=calls.inc -f calls.awk HEADER...

# A declaration starts at TN_API and ends at its semicolon, on one line or several; comments in it are ignored.
/^ *(TN_RETURNS_CONFIG_\()?TN_API / { within = 1; text = "" }
within {
    line = $0
    while ((from = index(line, "/*")) > 0) {
        rest = substr(line, from + 2)
        to = index(rest, "*/")
        line = substr(line, 1, from - 1) (to ? substr(rest, to + 2) : "")
    }
    text = text " " line
    if (index(text, ";")) {
        declared(text)
        within = 0
    }
}

function trimmed(s) { gsub(/^[ \t]+|[ \t]+$/, "", s); gsub(/[ \t]+/, " ", s); return s }

# Splits "const int64_t *d" into type and name; an array counts as a pointer.
function split_argument(a)
{
    a = trimmed(a)
    if (match(a, /\(\*[a-z_]+\)/)) {
        name = substr(a, RSTART + 2, RLENGTH - 3)
        type = substr(a, 1, RSTART - 1) "(*)" substr(a, RSTART + RLENGTH)
        return
    }
    star = sub(/\[[^]]*\]$/, "", a) ? "*" : ""
    match(a, /[A-Za-z0-9_]+$/)
    name = substr(a, RSTART)
    type = trimmed(substr(a, 1, RSTART - 1) star)
}

function argument(type, name, i)
{
    if (!(type in makers)) {
        makers[type] = ++types
        printf "static __typeof__(%s) argument_%d(const char *name, int i)\n", type, types >out
        printf "{\n    (void)name, (void)i;\n    return ARG(%s, name, i);\n}\n", type >out
    }
    return sprintf("argument_%d(\"%s\", %d)", makers[type], name, i)
}

function declared(s,    i, c, depth, from, args, n, list, result, which)
{
    if (!match(s, /tn_[a-z0-9_]+\(/)) return
    which = substr(s, RSTART, RLENGTH - 1)
    if (which in all || which ~ /^(tn_set_allocator|tn_set_io|tn_world_mpi)$/) return
    result = trimmed(substr(s, index(s, "TN_API") + 6, RSTART - index(s, "TN_API") - 6))
    from = RSTART + RLENGTH
    depth = 1
    for (i = from; depth && i <= length(s); i++) {
        c = substr(s, i, 1)
        if (c == "(") depth++
        if (c == ")") depth--
        if ((c == "," && depth == 1) || !depth) {
            args[++n] = substr(s, from, i - from)
            from = i + 1
        }
    }
    for (i = 1; i <= n; i++) {
        if (trimmed(args[i]) == "void" || trimmed(args[i]) == "...") continue
        split_argument(args[i])
        list = list (list ? ", " : "") argument(type, name, i)
    }
    all[which] = ++calls
    order[calls] = which
    kind = result ~ /\*$/ ? "POINTER" : result == "void" ? "NOTHING" : result == "tn_status" ? "STATUS" : "VALUE"
    printf "static void call_%s(void) { %s(%s(%s)); }\n", which, kind, which, list >out
}

END {
    print "static const struct {\n    const char *name;\n    void (*run)(void);\n} calls[] = {" >out
    for (i = 1; i <= calls; i++) printf "    {\"%s\", call_%s},\n", order[i], order[i] >out
    print "};" >out
}
