# Reads preprocessed C (gcc -E -dD) and prints "kind name" for each name that Tenon's headers declare at file scope:
# functions, types, tags, enumerators, macros; and "made MACRO STRUCT" for a call with keywords. `root` is the folder of
# these headers; declarations of other headers are ignored.
/^# [0-9]+ "/ {
    file = $3
    gsub(/"/, "", file)
    own = index(file, root "/") == 1
    next
}
!own { next }
/^#define / {
    name = $2
    sub(/\(.*/, "", name)
    print "macro", name
    if ($2 ~ /\(/) {
        print "call", name
        # The struct of a call with keywords.
        body = substr($0, index($0, ")") + 1)
        if (name ~ /^tn_/ && body ~ /__VA_ARGS__/ &&
            (match(body, /\(tn_[a-z0-9_]+\) *[{]/) || match(body, /[ ,(]tn_[a-z0-9_]+_(config|args|options)[^a-z0-9_]/))) {
            body = substr(body, RSTART + 1, RLENGTH - 1)
            sub(/[^a-z0-9_].*/, "", body)
            print "made", name, body
        }
    }
    next
}
/^#/ { next }
{ text = text " " $0 }
END {
    n = 0
    while (match(text, /[A-Za-z_][A-Za-z0-9_]*|"[^"]*"|[0-9][A-Za-z0-9_.]*|[^ \t]/)) {
        token[++n] = substr(text, RSTART, RLENGTH)
        text = substr(text, RSTART + RLENGTH)
    }
    depth = paren = 0
    start = 1
    for (i = 1; i <= n; i++) {
        t = token[i]
        if (t == "{") {
            kind[++depth] = enum ? "enum" : "other"
            enum = 0
            if (depth == 1 && paren == 0 && body_of_function(i)) kind[depth] = "body"
        } else if (t == "}") {
            if (kind[depth] == "body") start = i + 1
            depth--
        } else if (t == "(") paren++
        else if (t == ")") paren--
        else if (t == ";" && depth == 0) start = i + 1
        else if (t == "enum") enum = 1
        else if (t ~ /^[A-Za-z_]/) {
            before = token[i - 1]
            after = token[i + 1]
            if (before ~ /^(struct|union|enum)$/) {
                if (after == "{") print "tag", t
            }
            else if (depth && kind[depth] == "enum" && before ~ /^[{,]$/) print "enumerator", t
            else if (depth == 0 && paren == 0 && t != "__attribute__" && t != "_Static_assert") {
                if (token[start] == "typedef") {
                    if (after ~ /^[;,[]$/ || (after == "(" && before ~ /^([A-Za-z_].*|[*])$/ && before != "typedef" && token[i + 2] != "*"))
                        print "type", t
                } else if (after == "(" && before ~ /^([A-Za-z_].*|[*])$/) print "function", t
            } else if (depth == 0 && paren == 1 && token[start] == "typedef" && before == "*" && token[i - 2] == "(" && after == ")")
                print "type", t
        }
        if (t == ";" && depth == 0) enum = 0
    }
}
function body_of_function(at) { return token[at - 1] == ")" }
