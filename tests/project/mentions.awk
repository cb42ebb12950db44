# Prints "file:line: name" for each file that a comment or a page names, but not for #include lines, which compilers
# check, nor for patterns like *.c.
function names(text, word, before)
{
    while (match(text, /[A-Za-z0-9_.\/-]*[a-z0-9_][.](k[.]c|c|h|sh|awk)[^A-Za-z0-9_(]/)) {
        word = substr(text, RSTART, RLENGTH - 1)
        before = RSTART > 1 ? substr(text, RSTART - 1, 1) : " "
        text = substr(text, RSTART + RLENGTH - 1)
        if (before !~ /[*}>]/ && word !~ /^[.>\/]/) print FILENAME ":" FNR ": " word
    }
}
FNR == 1 { inside = 0 }
/^ *# *include/ { next }
FILENAME ~ /[.]md$/ { names($0 " "); next }
{
    rest = $0
    for (;;) {
        if (!inside) {
            at = index(rest, "/*")
            if (!at) break
            rest = substr(rest, at + 2)
            inside = 1
        }
        at = index(rest, "*/")
        if (!at) {
            names(rest " ")
            break
        }
        names(substr(rest, 1, at - 1) " ")
        rest = substr(rest, at + 2)
        inside = 0
    }
}
