#!/usr/bin/env bash
# tests/project/same_objects.sh OLD-BUILD NEW-BUILD: checks that the object files of the library and the programs are
# byte-identical, for a change of comments only: no code contains __LINE__ or __FILE__, and the release build has no
# debug information. Prints each object that differs or exists on one side only, and fails if there is one. Not run by
# ctest.
set -euo pipefail
[ $# = 2 ] || { echo "usage: $0 OLD-BUILD NEW-BUILD" >&2 && exit 2; }
objects() { (cd "$1" && find . -name '*.o' ! -path './tests/*' ! -path './bench/*' | sort); }
same=0 differ=0
while read -r object; do
    if cmp -s "$1/$object" "$2/$object"; then
        same=$((same + 1))
    else
        echo "differs: $object" && differ=$((differ + 1))
    fi
done < <({ objects "$1" && objects "$2"; } | sort -u)
echo "$same object files are identical, $differ differ"
[ $differ = 0 ] && [ $same -gt 0 ]
