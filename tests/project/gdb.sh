#!/usr/bin/env bash
# docs/gdb/tenon-gdb.py: `p t` must show dtype, shape and values.
. "$(dirname "$0")/common.sh"
need gdb
fresh gdb
libraries=(-lm -pthread)
"${CC:-cc}" -std=c11 -g -O0 -I "$root" "$root/tests/project/gdb_probe.c" "$TENON_A" "${libraries[@]}" -o probe
cat >commands <<'EOF'
set pagination off
set debuginfod enabled off
break look_here
run
p t
p *t
p big
p half
p turned
p no
continue
p t
continue
EOF
gdb -nx -batch -x "$root/docs/gdb/tenon-gdb.py" -x commands ./probe >out 2>&1 || true
if grep -q 'ptrace: Operation not permitted' out; then
    echo "SKIPPED: this system does not let gdb run a program"
    exit 77
fi
expect()
{
    grep -qE -- "$1" out || wrong "gdb does not show: $1"
}
expect "^\\\$1 = f32 \[2, 3\] 'weight' 0x[0-9a-f]+$"
expect '^\[\[0\.5, -1, 2\],$'
expect '^ \[3, 4\.25, 1e\+05\]\]$'
expect "^\\\$2 = f32 \[2, 3\] 'weight'"
expect '^\$3 = i64 \[1000\] 0x'
expect '^\[0, 1, 2, \.\.\., 997, 998, 999\]$'
expect '^\$4 = bf16 \[\] 0x'
expect '^1\.5$'
expect '^\$5 = f32 \[3, 2\] strides \[1, 3\] offset 0 0x'
expect '^\[\[0\.5, 3\],$'
expect '^\$6 = NULL tensor$'
expect '^\$7 = bool \[3\] 0x'
expect '^\[true, false, true\]$'
grep -q 'exited normally' out || wrong "the probe did not end well"
[ $wrong = 0 ] || cat out
exit $wrong
