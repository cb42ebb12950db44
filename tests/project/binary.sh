#!/usr/bin/env bash
# Checks the built library: exported names, hardening, size.
. "$(dirname "$0")/common.sh"
need nm readelf strip gcc
most_bytes=$((4 * 1024 * 1024))
fresh binary

nm -D "$TENON_SO" | sed 's/@.*//' >dynamic-names
nm "$TENON_SO" >names 2>/dev/null

# Exports: exactly the names that the public headers declare, except those of the library tenon::mpi.
awk 'NF == 3 { print $3 }' dynamic-names | sort -u >exported
echo '#include <tenon/extras.h>' >all.c
gcc -std=c11 -I "$build/include" -fsyntax-only -aux-info prototypes all.c
folders='core|autograd|nn|optim|data|parallel|models|extras|tenon'
sed -nE "s/.*($folders)[^ ]*\.h:.* extern [^(]*[ *](tn_[a-z0-9_]+) \(.*/\2/p" prototypes |
    grep -vx tn_world_mpi | sort -u >declared
findings < <(comm -23 declared exported | sed 's/$/ is declared in a public header, but not exported/')
findings < <(comm -13 declared exported | sed 's/$/ is exported, but no public header declares it/')

# The static library shares its name space with the program: all its external names must start with tn_, too.
findings < <(nm -g --defined-only "$TENON_A" 2>/dev/null |
    awk 'NF == 3 && $3 !~ /^(tn_|DW\.ref\.)/ { print $3 " is a global name" }')

# Hardening: no executable stack, relocations read-only and bound at start, stack protector, no start-up code that
# changes the floating point mode of the whole process.
readelf -lW "$TENON_SO" >segments
readelf -dW "$TENON_SO" >dynamic
grep -q 'GNU_STACK.* RW ' segments || wrong "the stack is executable"
grep -q GNU_RELRO segments || wrong "no RELRO"
grep -qE 'BIND_NOW|Flags:.* NOW' dynamic || wrong "not bound at start (-z now)"
! grep -q TEXTREL dynamic || wrong "text relocations"
! grep -E 'RPATH|RUNPATH' dynamic || wrong "a run path"
grep -q ' __stack_chk_fail$' dynamic-names || wrong "no stack protector"
grep -qE ' __(memcpy|snprintf|vsnprintf|fprintf|strcpy|read|pread)[a-z0-9_]*_chk$' dynamic-names ||
    wrong "no _FORTIFY_SOURCE"
! grep -q set_fast_math names || wrong "crtfastmath is linked in"
for program in "$build"/bin/bench "$build"/bin/readme; do
    [ -e "$program" ] || continue
    readelf -hW "$program" >head
    grep -q 'Type: *DYN' head || wrong "$program is not position-independent"
done

# The names of the last release are still part of the ABI that the soname promises.
findings < <("$root/packaging/symbols" "$TENON_SO")
echo 'int tn_add;' >planted.c && gcc -shared -fPIC planted.c -o planted.so -Wl,-soname,libtenon.so.0.2
"$root/packaging/symbols" planted.so >planted && wrong "packaging/symbols accepts a library without its names"
grep -q '^tn_sub is part of' planted || wrong "packaging/symbols does not name tn_sub: $(head -n 2 planted)"

strip -o stripped.so "$TENON_SO"
bytes=$(stat -c %s stripped.so)
echo "$(wc -l <exported) names exported, $bytes bytes stripped"
[ "$bytes" -le $most_bytes ] || wrong "the stripped library has $bytes bytes, at most $most_bytes are allowed"
exit $wrong
