#!/usr/bin/env bash
# Every op has its line in the registry; and a room's kernels are its own: TN__TEMPLATE names the file that it stands
# in.
. "$(dirname "$0")/common.sh"
cd "$root"

while IFS=: read -r file name; do
    grep -q "OP($name)" autograd/rooms/registry.h || wrong "$file: OP($name) is not in autograd/rooms/registry.h"
done < <(grep -oE '^ *const tn_op +tn__op_[a-z0-9_]+ ' autograd/ops/*.c | sed 's/ *const tn_op *tn__op_//; s/ $//')

while IFS=: read -r file template; do
    [ "$template" = "$file" ] || wrong "$file: TN__TEMPLATE is \"$template\", which is another file"
done < <(grep -oE '^[[:space:]]*#[[:space:]]*define TN__TEMPLATE "[^"]*"' -r --include='*.[ch]' core autograd |
    sed -E 's/:.*"(.*)"/:\1/')

# What perf and a backtrace show says which op or module it is of: softmax_forward, not forward.
bare='forward|infer|backward|backward_ops|saves_for|describe|TN__\((fwd|bwd)\)'
findings < <(grep -nE "^static [^;={}()]*\b($bare)\(" autograd/ops/*.c nn/layers/*.c nn/attention/*.c nn/recurrent/*.c)

# A room leaves threads, memory and file handling to the skeletons.
findings < <(grep -nE '\b(pthread_|omp_|tn_parallel_for|fopen|getenv|atomic_)' autograd/ops/*.c)
exit $wrong
