#!/usr/bin/env bash
# Without Check, README's first command configures the programs, and -DTENON_TESTS=ON is an error that names Check.
. "$(dirname "$0")/common.sh"
need pkg-config
fresh bare

real=$(command -v pkg-config)
cat >pkg-config <<EOF
#!/bin/sh
for word in "\$@"; do [ "\$word" != check ] || exit 1; done
exec "$real" "\$@"
EOF
chmod +x pkg-config
export PKG_CONFIG=$PWD/pkg-config

cmake -S "$root" -B programs -DTENON_PROGRAMS=ON >programs.log 2>&1 ||
    wrong "does not configure without Check: $(cat programs.log)"
grep -q 'Check is not installed; the tests are not built' programs.log || wrong "does not report the missing tests"
[ ! -e programs/tests ] || wrong "the tests are built without Check"
[ -e programs/programs ] || wrong "the programs are not built"

! cmake -S "$root" -B programs -DTENON_TESTS=ON >tests.log 2>&1 || wrong "-DTENON_TESTS=ON does not ask for Check"
grep -q "'check'" tests.log || wrong "-DTENON_TESTS=ON does not name Check: $(cat tests.log)"
exit $wrong
