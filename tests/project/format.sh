#!/usr/bin/env bash
# Every C file is as clang-format leaves it. `tests/project/format.sh --fix` formats them. Versions differ in detail, so
# that another one than 14 (Debian 12's) checks nothing.
. "$(dirname "$0")/common.sh"
need clang-format
case $(clang-format --version) in
*' 14.'*) ;;
*)
    echo "SKIPPED: this is $(clang-format --version), the project is formatted by version 14"
    exit 77
    ;;
esac
cd "$root"
if [ "${1:-}" = --fix ]; then
    files -name '*.[ch]' | xargs clang-format -i
    exit
fi
findings < <(files -name '*.[ch]' | xargs clang-format --dry-run -Werror 2>&1 | grep 'error:')
exit $wrong
