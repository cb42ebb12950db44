#!/usr/bin/env bash
# Includes and calls must follow the order of the folders: CMakeLists.txt defines it between the folders of the library,
# the table below within them. A file may include public headers of lower folders, and the private headers in the table.
. "$(dirname "$0")/common.sh"
need nm

# folder | folders of the same library folder that it may use | private headers of other library folders
dependencies='
core/system      |                               |
core/base        |                               |
core/kernels     | base                          |
core/tensor      | base kernels                  |
core/skeletons   | base kernels tensor           |
core/products    | base kernels tensor skeletons |
core/files       | base tensor                   |
autograd/tape    |                               | core/base core/tensor core/skeletons/skeletons.h
autograd/rooms   | tape                          | core/base core/tensor core/skeletons/skeletons.h core/products
                 |                               | core/kernels/vecmath.h core/real.h
autograd/ops     | tape rooms                    | core/products core/real.h
                 |                               | core/kernels/sum_lanes.h core/kernels/vecmath.h
autograd/tools   | tape rooms ops                | core/base
nn/base          |                               | core/base/toolbox.h core/products/q8_fits.h
                 |                               | core/files/safetensors_rows.h autograd/tape/casts.h
nn/layers        | base                          | core/base/toolbox.h
nn/recurrent     | base                          | core/base/toolbox.h
nn/attention     | base layers                   | core/base/toolbox.h autograd/rooms/q8.h
optim            |                               | core/base/toolbox.h core/files/io.h core/real.h
                 |                               | core/kernels/kernels.h autograd/tape/casts.h
                 |                               | core/products/q8_fits.h core/products/gemm.h
data/text        |                               | core/base/toolbox.h core/files/io.h
data/tokenizer   | text                          | core/base/toolbox.h
data/tokenizer/encode | text tokenizer           | core/base/toolbox.h
data/tokenizer/files | text tokenizer tokenizer/encode | core/base/toolbox.h
data/tokenizer/train | text tokenizer tokenizer/encode | core/base/toolbox.h core/base/parallel.h
data/source      | text                          | core/base/toolbox.h
data/corpus      | text source tokenizer tokenizer/encode | core/base/toolbox.h
data/pairs       | text source corpus            | core/base/toolbox.h
data/labelled    | text source corpus tokenizer tokenizer/encode | core/base/toolbox.h
data/metrics     | text                          | core/base/toolbox.h core/tensor/print.h
parallel         |                               | core/base/toolbox.h optim/norm.h
parallel/mpi     |                               |
models/files     |                               | core/base/toolbox.h core/base/checked.h core/files
                 |                               | core/tensor/tensor.h
models/generate  |                               | core/base/toolbox.h core/files
models/bert      | files                         | core/base/toolbox.h
models/heads     | files bert                    | core/base/toolbox.h
models/gpt       | files generate                | core/base/toolbox.h
models/llama     | files generate                | core/base/toolbox.h
models/seq2seq   | files generate                | core/base/toolbox.h
models/open      | files generate bert heads gpt llama seq2seq | core/base/toolbox.h core/files/io.h
models/fit       |                               | core/base/toolbox.h core/files/io.h
extras/look      |                               |
extras/elmo      |                               |
extras/lbfgs     |                               |
extras/skip_thought |                            |
extras/report    |                               |
extras/runlog    |                               |
extras/vectors   |                               | core/base/toolbox.h core/kernels/kernels.h data/text
extras/images    |                               |
extras/vit       |                               |
extras/rnn_lm    |                               |
extras/reformer  |                               | core/base/toolbox.h models/files models/generate autograd/rooms
                 |                               | core/kernels core/products core/tensor core/real.h core/base/libm.h
extras/thai      |                               |
extras/torch     |                               | core/base core/files
extras/translators |                             |
extras/chat      |                               |
extras/peft      |                               |
extras/xlnet     |                               | core/base/toolbox.h models/bert models/files
                 |                               | nn/attention/checks.h nn/base/nn_private.h nn/layers/fuse.h
extras/families  | vit rnn_lm reformer torch translators xlnet |
'

# Allowed calls upwards: mainly the mathematics of gradients, which are sums of tensors, computed by ops. A line that no
# call needs is an error, too.
up='
autograd/tape/accumulate.c  | autograd/ops/add.c        | gradients of several uses are added
autograd/tape/engine_leaves.c | autograd/ops/add.c      | the old and new gradients of leaves are added
autograd/tape/sparse_grad.c | autograd/ops/sort.c       | sorts rows by index
autograd/tape/sparse_grad.c | autograd/ops/region.c     | extracts rows
autograd/tape/run_node.c    | autograd/ops/reshape.c    | a gradient gets the shape of its input,
autograd/tape/run_node.c    | autograd/ops/sum.c        | is summed over broadcast dims,
autograd/tape/run_node.c    | autograd/ops/to.c         | and gets the dtype of its input
autograd/tape/checkpoint.c  | autograd/ops/reshape.c    | recomputation starts from views of the inputs
autograd/tape/reversible.c  | autograd/ops/add.c        | adds the output of a block, and gradients
autograd/tape/reversible.c  | autograd/ops/sub.c        | subtracts the output of a block in the backward pass
autograd/tape/reversible.c  | autograd/ops/to.c         | restores the dtype of the input
autograd/tape/history.c     | autograd/ops/strided.c    | rebuilds views of overwritten memory
autograd/tape/autocast.c    | autograd/ops/to.c         | the inputs of an op, converted
autograd/rooms/registry.c   | autograd/ops/*            | the list of all ops
autograd/rooms/room.c       | autograd/ops/reshape.c    | gradients of broadcast inputs
autograd/rooms/room.c       | autograd/ops/to.c         | gradients of converted inputs
autograd/rooms/losses.c     | autograd/ops/mean.c       | .reduction of all losses
autograd/rooms/losses.c     | autograd/ops/sum.c        | .reduction of all losses
autograd/rooms/losses.c     | autograd/ops/to.c         | .reduction of all losses
autograd/rooms/reductions.c | autograd/ops/reshape.c    | gradients of a reduction get their dims back
autograd/rooms/norms.c      | autograd/ops/add_scalar.c | second derivatives of both norms
autograd/rooms/norms.c      | autograd/ops/mean.c       | second derivatives of both norms
autograd/rooms/norms.c      | autograd/ops/mul.c        | second derivatives of both norms
autograd/rooms/norms.c      | autograd/ops/rsqrt.c      | second derivatives of both norms
autograd/rooms/norms.c      | autograd/ops/square.c     | second derivatives of both norms
autograd/rooms/norms.c      | autograd/ops/sub.c        | second derivatives of both norms
autograd/rooms/attention_shapes.c | autograd/ops/clone.c | keys and values in 8 bits are dense
autograd/rooms/recurrent.c  | autograd/ops/add.c        | second derivatives of all recurrent ops
autograd/rooms/recurrent.c  | autograd/ops/cat.c        | second derivatives of all recurrent ops
autograd/rooms/recurrent.c  | autograd/ops/matmul.c     | second derivatives of all recurrent ops
autograd/rooms/recurrent.c  | autograd/ops/permute.c    | second derivatives of all recurrent ops
autograd/rooms/recurrent.c  | autograd/ops/region.c     | second derivatives of all recurrent ops
autograd/rooms/recurrent.c  | autograd/ops/to.c         | second derivatives of all recurrent ops
'

# Allowed cycles of calls, without the calls above: rooms of ops, each of which is the gradient of the other.
circles='
autograd/ops/sin.c           autograd/ops/cos.c
autograd/ops/gather.c        autograd/ops/scatter_add.c
autograd/ops/index_add.c     autograd/ops/index_select.c
autograd/ops/masked_select.c autograd/ops/masked_spread.c
autograd/ops/avg_pool2d.c    autograd/ops/avg_pool2d_grad.c
autograd/ops/conv2d.c        autograd/ops/conv2d_input_grad.c autograd/ops/conv2d_weight_grad.c
autograd/tape/autocast.c     autograd/tape/call.c              autograd/tape/replaced.c
' # In the last cycle, a call converts or replaces its inputs, and each of these makes a call.

# ---- queries of the tables ----

declare -A stands inside has_row lower
for house in $TENON_LAYERS; do lower[${house%%=*}]=,${house#*=},; done
while IFS='|' read -r folder on private; do
    [ "$on$private" ] || continue
    if [ "${folder// /}" ]; then # otherwise the row continues
        row=${folder// /}
        has_row[$row]=1
        stands[$row]=" $on "
    fi
    inside[$row]+=" $private "
done <<<"$dependencies"

below() # FROM TO: true if files of the first folder may use those of the second
{
    local house=${1%%/*} other=${2%%/*}
    [ "$2" != core/system ] || return 0 # the operating system is for all
    if [ "$house" = "$other" ]; then [[ $1 == "$2" || $2 == "$house" || ${stands[$1]-} == *" ${2#*/} "* ]]
    else [[ ${lower[$house]-} == *",$other,"* ]]; fi
}

is_public() { [[ " ${TENON_HEADERS//$'\n'/ } " == *" $1 "* ]]; }

# ---- includes ----

includes() # ROOT: prints each include that breaks a rule
{
    local house file line name target at folder its
    for house in $(folders); do
        [ -d "$1/$house" ] || continue
        (cd "$1" && grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' --include='*.[ch]' \
            --exclude-dir=programs --exclude-dir=tests "$house") |
            while IFS=: read -r file line name; do
                case $name in
                *'"'*) name=${name#*\"} name=${name%%\"*} ;;
                *'<tenon/'*)
                    echo "$file:$line: includes the installed header, not the folder's own"
                    continue
                    ;;
                *) continue ;;
                esac
                target= folder=${file%/*}
                for at in "$folder/$name" "$name"; do
                    [ -f "$1/$at" ] && target=$(realpath --relative-to="$1" "$1/$at") && break
                done
                its=${target%/*}
                if [ -z "$target" ]; then
                    echo "$file:$line: there is no $name"
                elif [ "${target%%/*}" = "$house" ]; then
                    is_public "$target" || below "$folder" "$its" ||
                        echo "$file:$line: $target is none of what $folder stands on"
                elif ! below "$folder" "$its"; then
                    echo "$file:$line: $house may not include $target"
                elif ! is_public "$target" && [[ $house = extras || $target != core/system/system.h ]] &&
                    [[ ${inside[$folder]-} != *" $its "* && ${inside[$folder]-} != *" $target "* ]]; then
                    echo "$file:$line: $target is private to ${target%%/*}"
                fi
            done
    done
    return 0
}

# ---- calls ----

calls() # EDGES: prints each call that points up, and no line of the table allows
{
    local from to symbol
    while read -r from to symbol; do
        below "${from%/*}" "${to%/*}" || echo "$from calls $symbol in $to, which is above it"
    done < <(allowed "$1" | sort -u -k1,2)
}

allowed() # EDGES: those that `up` does not list
{
    awk -v table="$up" '
        BEGIN {
            n = split(table, line, "\n")
            for (i = 1; i <= n; i++) {
                if (split(line[i], part, "|") < 3) continue
                gsub(/ /, "", part[1])
                gsub(/ /, "", part[2])
                may[part[1], part[2]] = 1
            }
        }
        {
            all = $2
            sub(/[^\/]*$/, "*", all)
            if (!(($1, $2) in may) && !(($1, all) in may)) print
        }' "$1"
}

# ---- the library ----

while read -r folder; do
    [ "${has_row[$folder]-}" ] || wrong "$folder has no row in the table of dependencies"
done < <(cd "$root" && find $(folders) -mindepth 2 -name '*.[ch]' -not -path 'extras/programs/*' \
    -not -path 'extras/tests/*' -printf '%h\n' | sort -u)
for folder in "${!has_row[@]}"; do
    [ -d "$root/$folder" ] || wrong "the table of dependencies has a row for $folder, which does not exist"
done
findings < <(includes "$root")

fresh layers
calls_between "$build/CMakeFiles" "$root" >edges
[ "$(wc -l <edges)" -gt 1000 ] || wrong "found only $(wc -l <edges) calls between files; the objects are missing"
findings < <(calls edges)
while IFS='|' read -r from to _; do
    from=${from// /} to=${to// /}
    [ -z "$from" ] || awk -v from="$from" -v to="${to%\*}" '$1 == from && index($2, to) == 1 { found = 1 }
        END { exit !found }' edges || wrong "$from no longer calls $to; remove its line from the table"
done <<<"$up"

found() { allowed "$1" | awk -f "$root/tests/project/circles.awk"; }
known()
{
    local line
    while read -ra line; do
        [ ${#line[@]} = 0 ] || printf '%s\n' "${line[@]}" | sort | paste -sd ' '
    done <<<"$circles"
}
findings < <(comm -23 <(found edges | sort) <(known | sort) | sed 's/^/cycle of calls: /')
findings < <(comm -13 <(found edges | sort) <(known | sort) | sed 's/^/no longer a cycle: /')

# ---- tests of the check: planted faults must be found ----

mkdir -p core/base core/files autograd extras/elmo tenon_objects.dir/core/base tenon_objects.dir/core/files
echo '#include "autograd/autograd.h"' >core/up.c
echo '#include "../core/hidden.h"' >autograd/hidden.c
echo '#include <tenon/tenon.h>' >autograd/door.c
echo '#include "core/files/io.h"' >core/base/floor.c
echo '#include "core/base/toolbox.h"' >extras/elmo/own.c
touch autograd/autograd.h core/hidden.h core/files/io.h core/base/toolbox.h
[ "$(includes "$PWD" | wc -l)" = 5 ] || wrong "layers.sh does not see the includes planted for it: $(includes "$PWD")"

echo 'void there(void); void here(void); void here(void) { there(); }' >core/base/here.c
echo 'void there(void); void here(void); void there(void) { here(); }' >core/files/there.c
for file in core/base/here core/files/there; do
    "${CC:-cc}" -c "$file.c" -o "tenon_objects.dir/$file.c.o"
done
calls_between . "$PWD" >planted
[ "$(calls planted)" = "core/base/here.c calls there in core/files/there.c, which is above it" ] ||
    wrong "layers.sh does not see the call planted for it: $(calls planted)"
[ "$(found planted)" = "core/base/here.c core/files/there.c" ] ||
    wrong "layers.sh does not see the circle planted for it: $(found planted)"
exit $wrong
