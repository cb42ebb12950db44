#!/usr/bin/env bash
# The table in docs/guide/models.md has a row for each model_type that the programs open. families.sh --fix writes it:
# the rows, in the order of the programs' own lists, the program, the class in transformers and the column of .gguf
# files come from the programs and from the tables in models/ and extras/; the first and the last column are the page's
# own text.
. "$(dirname "$0")/common.sh"
fresh families
page=$root/docs/guide/models.md
[ -x "$build/bin/bert" ] || { echo "SKIPPED: the programs are not built" && exit 77; }

mkdir none && echo '{"model_type": "none"}' >none/config.json
ends='For(MaskedLM|CausalLM|ImageClassification|ConditionalGeneration)|LMHeadModel|ModelWithLMHead|MTModel'
grep -ohE "\"[A-Za-z0-9]+($ends)\"" "$root"/{models,extras}/*/*.c | tr -d '"' | sort -u >classes
class_of() # TYPE: the class whose name begins with it
{
    awk -v type="$1" '
        BEGIN { gsub(/[^a-z0-9]/, "", type); sub(/text$/, "", type) }
        { rest = tolower($0) }
        index(rest, type) == 1 && substr(rest, length(type) + 1) ~ /^(for|lmhead|modelwith|mtmodel)/ { print; exit }
    ' classes
}
in_gguf() # TYPE
{
    [ "$1" = mistral ] || tr -d '\n ' <"$root/models/files/gguf_names.c" |
        grep -cE "\{(LLAMA\()?(\"[a-z0-9-]+\"|TN__GGUF_BERT),\"$1\"" >/dev/null
}
for program in bert gpt translate vit; do
    "$build/bin/$program" info none 2>&1 | grep -o 'supported: .*' | grep -o "'[^']*'" | tr -d "'" >types ||
        true
    [ -s types ] || wrong "$program info does not list what it opens"
    { grep -v '^tenon' types || true; } | while read -r type; do
        echo "$type|$program|$(class_of "$type")|$(in_gguf "$type" && echo yes)"
    done
done >registry
awk -F'|' '!$3 { print $1 " has no class in models/ or extras/" }' registry >missing
findings <missing

# table REGISTRY PAGE: the page with the table that the registry gives
table()
{
    awk '
    NR == FNR {
        split($0, r, "|")
        order[++n] = r[1]
        program[r[1]] = r[2]
        class[r[1]] = r[3]
        gguf[r[1]] = r[4]
        next
    }
    /^\| .*`/ {
        split($0, c, " *\\| *")
        type = c[3]
        gsub(/`/, "", type)
        name[type] = c[2]
        says[type] = c[7]
    }
    { line[FNR] = $0; lines = FNR }
    END {
        for (i = 1; i <= lines; i++) {
            if (line[i] !~ /^\| .*`/) { print line[i]; continue }
            if (done++) continue
            for (k = 1; k <= n; k++) {
                t = order[k]
                printf "| %s | `%s` | %s | `%s` | %s | %s |\n", t in name ? name[t] : t, t, class[t], program[t],
                    gguf[t], t in says ? says[t] : "?"
            }
        }
    }' "$1" "$2" | sed ':again; s/|  |/| |/; t again'
}
table registry "$page" >fixed
if [ "${1-}" = --fix ]; then
    cp fixed "$page"
    exit $wrong
fi
diff "$page" fixed >difference ||
    wrong "docs/guide/models.md is not what families.sh --fix writes: $(head -20 difference)"
if grep -n '| ? |' fixed; then wrong "docs/guide/models.md: describe these rows"; fi

# The check finds a family without a row, and a row without a family.
sed '2d' registry >less
table less "$page" | diff -q "$page" - >/dev/null && wrong "a row too many is not found"
echo 'new|gpt|NewForCausalLM|' | cat registry - >more && table more "$page" | diff -q "$page" - >/dev/null &&
    wrong "a missing row is not found"
exit $wrong
