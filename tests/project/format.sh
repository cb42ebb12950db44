#!/usr/bin/env bash
# Every C file must be formatted by clang-format; `tests/project/format.sh --fix` formats all. Versions differ in
# details: the check is skipped unless the version is 14 (Debian 12).
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
