#!/usr/bin/env bash
# Includes point one way: a file of the library may include its own folder, and of the folders below it their public
# headers only. The tape alone may look inside the tensors (core/internal.h), and its kernels share core's sums and
# functions. data/ reads files of any size through core's one way to files, and finds words by core's seeded hashing.
. "$(dirname "$0")/common.sh"
private="autograd:core/real.h optim:core/real.h"
private+=" autograd:core/internal.h autograd:core/kernels/sum_lanes.h autograd:core/kernels/vecmath.h"
private+=" data:core/internal.h data:core/files/io.h"

# check ROOT: prints each include that breaks the rule
check()
{
    local folder lower file line name target top
    for folder in $(folders); do
        lower=$(tr ' ' '\n' <<<"$TENON_LAYERS" | sed -n "s/^$folder=//p")
        [ -d "$1/$folder" ] || continue
        (cd "$1" && grep -rnE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<]' --include='*.[ch]' "$folder") |
            while IFS=: read -r file line name; do
                case $name in
                *'"'*) name=${name#*\"} name=${name%%\"*} ;;
                *'<tenon/'*)
                    echo "$file:$line: includes the installed header, not the folder's own"
                    continue
                    ;;
                *) continue ;;
                esac
                target=
                for at in "$(dirname "$file")/$name" "$name"; do
                    [ -f "$1/$at" ] && target=$(realpath --relative-to="$1" "$1/$at") && break
                done
                top=${target%%/*}
                case "$target" in
                "") echo "$file:$line: there is no $name" ;;
                "$folder"/*) ;;
                *)
                    if [[ ",$lower," != *",$top,"* ]]; then
                        echo "$file:$line: $folder may not include $target"
                    elif [[ " $TENON_HEADERS " != *" $target "* && " $private " != *" $folder:$target "* ]]; then
                        echo "$file:$line: $target is private to $top"
                    fi
                    ;;
                esac
            done
    done
    return 0
}

findings < <(check "$root")

# The check itself: three planted faults must be seen.
fresh layers
mkdir -p core autograd
echo '#include "autograd/autograd.h"' >core/up.c
echo '#include "../core/hidden.h"' >autograd/hidden.c
echo '#include <tenon/tenon.h>' >autograd/door.c
touch autograd/autograd.h core/hidden.h
[ "$(check "$PWD" | wc -l)" = 3 ] || wrong "layers.sh does not see the faults planted for it: $(check "$PWD")"
exit $wrong
