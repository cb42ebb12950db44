#!/usr/bin/env bash
# Every script must be free of syntax errors, also those that a quick run does not start: shell scripts by bash, Python
# scripts by python3, if installed.
. "$(dirname "$0")/common.sh"
cd "$root"

while IFS= read -r file; do
    case $file:$(head -n 1 "$file") in
    *.sh:* | *:'#!/usr/bin/env bash') findings < <(bash -n "$file" 2>&1) ;;
    esac
done < <(files -name '*.sh' -o -path './*' ! -name '*.*' -perm -u+x)
need python3
findings < <(files -name '*.py' | xargs python3 -c '
import ast, sys
for path in sys.argv[1:]:
    try:
        ast.parse(open(path, encoding="utf8").read(), path)
    except SyntaxError as e:
        print("%s:%s: %s" % (path, e.lineno, e.msg))')
exit $wrong
