# Counts the phrases that docs/style.md tells us to avoid. Input: the phrases (a file of extended regular expressions, one
# a line, in lower case), then any number of sources. Output: a line "file:line: kind: phrase: text" for each occurrence,
# and a line "file lines N" with the number of comment lines of each source. Kinds: comment, string, page.
#
# C: comments, and string literals; adjacent literals are one text. Scripts (.sh, .py, .awk, .txt, none): lines that start with #
# are comments, the others are strings, since they print messages. Pages (.md, .1): everything except fenced blocks of
# text and indented blocks, which quote output.

# Reports the phrases in `text`. Line breaks in it are "\n"; `line` is the number of its first line.
function report(kind, text, line,    rest, at, before, word, breaks, shown)
{
    text = tolower(text)
    gsub(/[`*_"]/, " ", text)
    rest = " " text " "
    while (match(rest, phrases)) {
        before = substr(rest, 1, RSTART)
        word = substr(rest, RSTART + 1, RLENGTH - 2)
        breaks = gsub(/\n/, " ", before)
        line += breaks
        shown = substr(rest, RSTART > 40 ? RSTART - 40 : 1, 90)
        gsub(/[\n ]+/, " ", shown)
        gsub(/\n */, " ", word)
        if (list) print FILENAME ":" line ": " kind ": " word ": " shown
        count[FILENAME, kind]++
        rest = substr(rest, RSTART + RLENGTH - 1)
        if (substr(rest, 1, 1) !~ /[ \n]/) rest = " " substr(rest, 2)
    }
}

function end_string()
{
    if (literal != "") report("string", literal, literal_line)
    literal = ""
}

function end_comment()
{
    if (remark != "") report("comment", remark, remark_line)
    remark = ""
}

# One line of C: the state `inside` says whether a comment is open.
function c_line(rest,    at, text, first)
{
    first = 1
    for (;;) {
        if (inside) {
            if (first) {
                comments[FILENAME]++
                sub(/^ *\* ?/, "", rest)
            }
            at = index(rest, "*/")
            remark = remark (at ? substr(rest, 1, at - 1) : rest)
            if (!at) {
                remark = remark "\n"
                return
            }
            inside = 0
            end_comment()
            rest = substr(rest, at + 2)
            first = 0
            continue
        }
        if (!match(rest, /"|'|\/\*|\/\//)) {
            if (rest ~ /[^ \t\\]/) end_string()
            return
        }
        text = substr(rest, RSTART, RLENGTH)
        if (substr(rest, 1, RSTART - 1) ~ /[^ \t]/) end_string()
        rest = substr(rest, RSTART + RLENGTH)
        if (text == "//") {
            comments[FILENAME]++
            report("comment", rest, FNR)
            return
        }
        if (text == "/*") {
            if (first) comments[FILENAME]++
            inside = 1
            first = 0
            remark = ""
            remark_line = FNR
        } else if (text == "'") {
            if (!match(rest, /^(\\.[^']*|[^'\\])'/)) continue # the digits' apostrophe, or a macro's
            rest = substr(rest, RLENGTH + 1)
        } else {
            if (!match(rest, /^([^"\\]|\\.)*"/)) return
            text = substr(rest, 1, RLENGTH - 1)
            gsub(/\\n/, " ", text)
            if (literal == "") literal_line = FNR
            else literal = literal substr("\n\n\n\n\n\n\n\n", 1, FNR - literal_last)
            literal_last = FNR
            literal = literal text
            rest = substr(rest, RLENGTH + 1)
        }
    }
}

FNR == NR { # the phrases
    if ($0 == "") next
    gsub(/ /, "[ \n]+")
    phrases = phrases (phrases == "" ? "" : "|") $0
    next
}
FNR == 1 {
    if (phrases !~ /^\[/) phrases = "[^a-z0-9](" phrases ")[^a-z0-9]"
    end_string()
    inside = fence = 0
    seen[++files] = FILENAME
    kind = FILENAME ~ /[.][ch]$/ ? "c" : FILENAME ~ /[.](md|1)$/ ? "page" : "script"
    paragraph = ""
}
kind == "c" && /^[ \t]*#[ \t]*(include|if|elif|ifdef|ifndef)/ && !inside && !/\/\*/ { next }
kind == "c" {
    c_line($0)
    next
}
kind == "page" {
    if (/^ *```/) {
        fence = fence ? 0 : /```(text)? *$/ ? 1 : 2
        next
    }
    if (fence == 1 || /^    [^ ]/) next
    report("page", $0, FNR) # a phrase across two lines is found by the next rule
    if (previous_file == FILENAME && previous ~ /[a-z,]$/ && /^ *[a-z]/) across(previous, $0)
    previous = $0
    previous_file = FILENAME
    next
}
/^[ \t]*#/ {
    comments[FILENAME]++
    report("comment", $0, FNR)
    next
}
{
    if (FILENAME ~ /[.]py$/) gsub(/ is None/, " == None") # code
    report("string", $0, FNR)
}

# A phrase that starts on the line before: only the last and the first words are looked at, so that none counts twice.
function across(one, two,    left, right, whole)
{
    left = tolower(one)
    right = tolower(two)
    sub(/^.* ([^ ]+ [^ ]+)$/, "& ", left)
    if (match(left, /[^ ]+ [^ ]+ *$/)) left = substr(left, RSTART)
    sub(/^ +/, "", right)
    if (match(right, /^[^ ]+( [^ ]+)?/)) right = substr(right, 1, RLENGTH)
    whole = " " left " " right " "
    gsub(/ +/, " ", whole)
    while (match(whole, phrases)) {
        if (RSTART < length(left) + 1 && RSTART + RLENGTH - 1 > length(left) + 3) {
            if (list) print FILENAME ":" FNR - 1 ": page: " substr(whole, RSTART + 1, RLENGTH - 2) ": " whole
            count[FILENAME, "page"]++
        }
        whole = substr(whole, RSTART + RLENGTH - 1)
    }
}

END {
    end_string()
    for (i = 1; i <= files && !list; i++)
        print seen[i], comments[seen[i]] + 0, count[seen[i], "comment"] + 0, count[seen[i], "string"] + 0,
            count[seen[i], "page"] + 0
}
