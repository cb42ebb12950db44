# Reads a line "from to" for each call between two files; prints a line for each cycle: the files that call each other,
# directly or indirectly, sorted.
{
    if (!($1 in out)) name[++n] = $1
    if (!($2 in out)) name[++n] = $2
    out[$1] = out[$1] " " $2
    out[$2] = out[$2] ""
}
function reach(from, seen, stack, top, file, next_ones, k, i)
{
    stack[top = 1] = from
    while (top) {
        file = stack[top--]
        k = split(out[file], next_ones, " ")
        for (i = 1; i <= k; i++)
            if (!((from, next_ones[i]) in reached)) {
                reached[from, next_ones[i]] = 1
                stack[++top] = next_ones[i]
            }
    }
}
END {
    for (i = 1; i <= n; i++) reach(name[i])
    for (i = 1; i <= n; i++) { # insertion sort: a few hundred names
        v = name[i]
        for (k = i - 1; k > 0 && name[k] > v; k--) name[k + 1] = name[k]
        name[k + 1] = v
    }
    for (i = 1; i <= n; i++) {
        if (done[name[i]] || !((name[i], name[i]) in reached)) continue
        line = ""
        for (k = i; k <= n; k++)
            if (((name[i], name[k]) in reached) && ((name[k], name[i]) in reached)) {
                line = line (line ? " " : "") name[k]
                done[name[k]] = 1
            }
        print line
    }
}
