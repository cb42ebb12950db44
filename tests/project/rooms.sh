#!/usr/bin/env bash
# Every op must have a line in the registry, in the order of the headers; TN__TEMPLATE in a room must name its own file;
# every forward of a module must check that the module is valid.
. "$(dirname "$0")/common.sh"
cd "$root"

while IFS=: read -r file name; do
    grep -q "OP($name)" autograd/rooms/registry.h || wrong "$file: OP($name) is not in autograd/rooms/registry.h"
done < <(grep -oE '^( *const tn_op +tn__op_|TN__(UNARY|STEP|TEST|SCALAR|BINARY|OP)\()[a-z0-9_]+' autograd/ops/*.c |
    sed -E 's/:.*(tn__op_|\()/:/')

# The registry lists the ops in the order of the public headers.
in_order() # REGISTRY HEADER...: each op that the headers declare before the op that the registry lists before it
{
    local registry=$1
    shift
    { grep -hE '^TN_API' "$@" | grep -oE '\btn_[a-z0-9_]+\(' |
        sed 's/^tn_/header /; s/($//; s/_run$//; s/_steps$//; s/_list$//'
        grep -oE 'OP\([a-z0-9_]+\)' "$registry" | sed 's/OP(/registry /; s/)//'; } | awk '
        $1 == "header" { if (!($2 in at)) at[$2] = NR; next }
        $2 in at {
            if (at[$2] < last)
                print "autograd/rooms/registry.h: OP(" $2 ") is listed after OP(" name "), but declared before it"
            last = at[$2]; name = $2
        }'
}
ordered=(ops.h more_ops.h fused.h rope.h steps.h experts.h)
findings < <(in_order autograd/rooms/registry.h "${ordered[@]/#/autograd/}")

while IFS=: read -r file template; do
    [ "$template" = "$file" ] || wrong "$file: TN__TEMPLATE is \"$template\", which is another file"
done < <(grep -oE '^[[:space:]]*#[[:space:]]*define TN__TEMPLATE "[^"]*"' -r --include='*.[ch]' core autograd |
    sed -E 's/:.*"(.*)"/:\1/')

# Names in profiles and backtraces must identify the op or module: softmax_forward, not forward.
bare='forward|infer|backward|backward_ops|saves_for|describe|TN__\((fwd|bwd)\)'
findings < <(grep -nE "^static [^;={}()]*\b($bare)\(" autograd/ops/*.c nn/layers/*.c nn/attention/*.c nn/recurrent/*.c)

# A forward must first check that its module is valid: tn_ready must come before tn_enter, and be in every public
# function that takes a module and returns a tensor.
forwards() # FILE...: a line "file:line: what is wrong" each
{
    awk '
    FNR == 1 { inside = 0; head = "" }
    !inside && /^\{/ { inside = FNR; ready = 0; name = head; sub(/\(.*/, "", name); sub(/.*[ *]/, "", name) }
    inside && /(tn_ready|tn_module_ready|tn__lm_(run|loss|decoding))\(/ { ready = 1 } # the last call tn_module_ready
    inside && /tn_enter\(/ && !ready {
        print FILENAME ":" FNR ": " name " calls tn_enter without `if (!tn_ready(m)) return NULL;` before it"
    }
    inside && /^\}/ {
        if (head ~ takes && !ready)
            print FILENAME ":" inside ": " name " takes a module and does not ask tn_ready"
        inside = 0; head = ""
    }
    !inside && !/^[[:space:]]*$/ { head = /^[A-Za-z_]/ ? $0 : head $0 }' takes="$takes" "$@"
}
headers=$(tr ' ' '\n' <<<"$TENON_HEADERS" | grep -E '^(nn|models|extras)/')
modules=$(cat $headers | tr '\n' ' ' | grep -oE 'tn_module +base;[^}]*\} [a-z0-9_, ]+;' |
    sed 's/.*} //; s/[ ;]//g' | tr ',\n' '||')
takes="^tn_tensor [*]tn_[a-z0-9][a-z0-9_]*[(](${modules%|}) [*]"
mapfile -t sources < <(files -name '*.c' -o -name '*.h' |
    grep -E '^(nn|models|extras|bench|examples|programs|tests/common|tests/outside)/' |
    grep -vE '^(nn/module.h|extras/tests/.*)$')
findings < <(forwards "${sources[@]}")

# unit.mistakes must call each of them and each constructor.
called() # prints the functions in the public headers that take a module, and its constructors
{
    cat $headers | sed -nE "s/^TN_API [a-z0-9_]+ +[*]?(tn_[a-z0-9_]+)\((${modules%|}) [*].*/\1/p
        s/^TN_API (${modules%|}) +[*](tn_[a-z0-9_]+)_(create|new)\(.*/\2_new/p"
}
[ "$(called | wc -l)" -gt 80 ] || wrong "only $(called | wc -l) functions that take or make a module were found"
findings < <(called | sed 's/_run$//' | while read -r name; do
    grep -qE "\"$name\"|\b$name(_forward)?\(" tests/unit/models/test_mistakes.c ||
        echo "tests/unit/models/test_mistakes.c does not call $name"
done)

# Test of the check: forwards without the guard must be found.
fresh rooms
echo 'TN_API tn_tensor *tn_add(void), *tn_sub(void);' >planted.h
echo '#define OPS OP(sub) OP(add)' >registry.h
[ "$(in_order registry.h planted.h | wc -l)" = 1 ] || wrong "rooms.sh does not see the order planted for it"
cat >planted.c <<'PLANTED'
static tn_tensor *mlp_forward(mlp *m, tn_tensor *x)
{
    tn_frame f = tn_enter(m);
    return tn_leave(f, tn_call(m->up, x));
}
tn_tensor *tn_mha_run(tn_mha *m, tn_mha_args a)
{
    return attend(m, &a);
}
tn_tensor *tn_linear_good(tn_linear *m)
{
    if (!tn_ready(m)) return NULL;
    tn_frame f = tn_enter(m);
    return tn_leave(f, m->weight);
}
PLANTED
[ "$(forwards planted.c | cut -d: -f2 | tr '\n' ' ')" = '3 7 ' ] ||
    wrong "rooms.sh does not see the forwards planted: $(forwards planted.c)"
cd "$root"

# A room must not use threads, allocation or files; skeletons do.
findings < <(grep -nE '\b(pthread_|omp_|tn_parallel_for|fopen|getenv|atomic_)' autograd/ops/*.c)
exit $wrong
