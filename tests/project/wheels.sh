#!/usr/bin/env bash
# python/wheels: the wheels for Linux, Windows and macOS have the right names, tags, hashes, libraries and functions.
# That for Linux on x86-64 is installed in a new environment and runs the package's tests; README's program with the
# libraries for aarch64 under qemu, and for Windows under Wine, prints the losses of this machine. macOS: not run.
# WHEELS: the folder of python/wheels, default build/wheels.
. "$(dirname "$0")/common.sh"
need python3 llvm-readobj llvm-nm
python3 -c 'import ziglang' 2>/dev/null || { echo "SKIPPED: zig is not installed (pip install ziglang)" && exit 77; }
[ -x "$build/bin/readme" ] || { echo "SKIPPED: readme is not built" && exit 77; }
fresh wheels
out=${WHEELS:-$build/wheels}
export PYTHONDONTWRITEBYTECODE=1
"$root/python/wheels" "$out" ${WHEEL_TAGS:-} >said 2>&1 || wrong "python/wheels: $(tail -n 20 said)"
grep whl said || true

# A fault planted in a wheel must be found.
planted=$(echo "$out"/*manylinux_2_28_x86_64.whl)
python3 - "$root/python/wheels" "$planted" "$out" >faults <<'END' || true
import importlib.machinery, importlib.util, os, sys, zipfile
path, wheel, out = sys.argv[1:]
loader = importlib.machinery.SourceFileLoader("wheels", path)
wheels = importlib.util.module_from_spec(importlib.util.spec_from_loader("wheels", loader))
loader.exec_module(wheels)
tag = "manylinux_2_28_x86_64"
with zipfile.ZipFile(wheel) as z, zipfile.ZipFile(os.path.basename(wheel), "w") as to:
    for name in z.namelist():
        to.writestr(name, z.read(name) + (b"\n" if name == "tenon/ops.py" else b""))
wheels.check(tag, os.path.basename(wheel), os.path.join(out, tag, wheels.library_name(tag)))
END
grep -q 'RECORD is wrong about tenon/ops.py' faults || wrong "python/wheels does not see a changed file: $(cat faults)"

"$build/bin/readme" >losses
mkdir -p include/tenon
cp "$out/tenon.h" include/tenon/
same() # SYSTEM COMMAND...
{
    "${@:2}" 2>err | tr -d '\r' | diff losses - >difference || wrong "$1: other losses: $(cat difference err)"
    echo "$1: the losses of this machine"
}

wheel=$(echo "$out"/*manylinux_2_28_x86_64.whl)
if [ "$(uname -m)" = x86_64 ] && python3 -m venv --help >/dev/null 2>&1; then
    python3 -m venv venv
    venv/bin/pip install --quiet --no-index "$wheel" >log 2>&1 || wrong "pip install: $(tail -n 5 log)"
    (cd / && env -u TENON_LIBRARY "$OLDPWD/venv/bin/python" "$root/tests/project/python_view.py" alone) >log 2>&1 ||
        wrong "the package's tests: $(tail -n 20 log)"
    sed -nE 's/^(Ran .*|OK.*)/x86_64: \1/p' log
fi
if [ -e "$out/manylinux_2_28_aarch64" ] && command -v qemu-aarch64 >/dev/null && [ -d /usr/aarch64-linux-gnu/lib ]; then
    python3 -m ziglang cc -target aarch64-linux-gnu.2.28 -O1 -Iinclude "$root/examples/readme.c" \
        "$out/manylinux_2_28_aarch64/libtenon.so.0.2" -lm -o readme-aarch64
    same aarch64 qemu-aarch64 -L /usr/aarch64-linux-gnu -E "LD_LIBRARY_PATH=$out/manylinux_2_28_aarch64" \
        ./readme-aarch64
else
    echo "SKIPPED in part: aarch64; qemu-user and libc6-arm64-cross run it"
fi
wine=$(command -v wine64 || command -v wine || true)
if [ -e "$out/win_amd64" ] && [ "$wine" ] && command -v x86_64-w64-mingw32-gcc >/dev/null; then
    cp "$out/win_amd64/tenon-0.2.dll" .
    x86_64-w64-mingw32-gcc -O1 -Iinclude -DTENON_DLL "$root/examples/readme.c" tenon-0.2.dll -o readme.exe
    same windows env WINEDEBUG=-all "WINEPREFIX=$PWD/prefix" "$wine" ./readme.exe
else
    echo "SKIPPED in part: Windows; wine64 and gcc-mingw-w64-x86-64 run it"
fi
exit $wrong
