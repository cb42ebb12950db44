#!/usr/bin/env bash
# C++: every call with keywords compiles as C++20, and misuses of it do not; the headers and the example compile as
# C++11, 14, 17 and 20 without warnings and run; callbacks may throw. With each installed compiler.
. "$(dirname "$0")/common.sh"
need c++ python3
fresh cpp
warnings="-Wall -Wextra -Wpedantic -Wshadow -Wconversion -I $build/include"

# One call of each macro with keywords, of its required arguments alone. `anything` converts to each of their types.
python3 - "$root" $TENON_HEADERS >all.cpp <<'END'
import re, sys
macros = {}
for header in sys.argv[2:]:
    text = open(sys.argv[1] + "/" + header).read().replace("\\\n", " ")
    for m in re.finditer(r"^#define (\w+)\(([^)]*)\)(.*)$", text, flags=re.M):
        macros[m[1]] = [p.strip() for p in m[2].split(",") if p.strip() not in ("", "...")], m[3]

def required(name):
    parameters, body = macros[name]
    inner = [k for k in re.findall(r"\b(TN_[A-Z0-9_]+_)\(", body) if k in macros]
    args = re.search(r"TN_ARGS(\d)_", body)
    if args or "TN_OF_MODULE_" in inner:
        return len(parameters) + (int(args[1]) if args else 1)
    inner = [k for k in inner if k not in ("TN_CALL_", "TN_NEW_", "TN_FILLED_", "TN_ANY_MODULE_")]
    return len(parameters) + (required(inner[0]) if inner else 0)

print("""#include <tenon/extras.h>
struct anything {
    template <class T> operator T() const;
    tn_sequential *operator->() const;
};
template <class T> void use(const T &) {}
void all(anything any);
void all(anything any)
{""")
for name, (parameters, body) in sorted(macros.items()):
    if name.startswith("tn_") and re.search(r"TN_CALL_|TN_NEW_", body):
        print(f"    use({name}({', '.join(['any'] * required(name))}));")
print("}")
END
[ "$(grep -c ' use(' all.cpp)" -ge 190 ] || wrong "only $(grep -c ' use(' all.cpp) calls with keywords were found"

misuses=('tn_mean(x, 1)' 'tn_sum(x, TN_DIMS(1))' 'tn_sum(x, .dims = {1})' 'tn_linear_new(3, 4)'
    'tn_linear_new(.inn = 3)' 'tn_sum(x, .keepdim = true, .dims = TN_DIMS(1))' 'tn_zeros(tn_shape{2, 3})'
    'tn_zeros({2, 3})' 'tn_permute(x, {1, 0})' 'tn_adamw_new(x, .lr = 1)')
tried=0
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    tried=1
    # shellcheck disable=SC2086 # flags, one word each
    $compiler -std=c++20 $warnings -Werror -fsyntax-only all.cpp >out 2>&1 ||
        wrong "$compiler, all calls: $(head -5 out)"
    for misuse in "${misuses[@]}"; do
        printf '#include <tenon/extras.h>\nvoid f(tn_tensor *x);\nvoid f(tn_tensor *x) { (void)x, (void)%s; }\n' \
            "$misuse" >misuse.cpp
        # shellcheck disable=SC2086
        ! $compiler -std=c++20 $warnings -fsyntax-only misuse.cpp >out 2>&1 || wrong "$compiler takes $misuse"
    done
    for standard in 11 14 17 20; do
        # shellcheck disable=SC2086
        $compiler -std=c++$standard $warnings -Werror -c "$root/examples/cpp_module.cpp" -o example.o >out 2>&1 ||
            wrong "$compiler, C++$standard: $(head -5 out)"
        # shellcheck disable=SC2086
        $compiler example.o -o example "$TENON_SO" -Wl,-rpath,"$build" >out 2>&1 &&
            ./example >out 2>&1 &&
            [ "$(grep -c 'below 0.01\|hook: the gradient is too large\|error: add' out)" = 4 ] ||
            wrong "the example of C++$standard, $compiler: $(head -5 out)"
    done
    # shellcheck disable=SC2086
    $compiler -std=c++17 $warnings -Werror "$root/tests/outside/exceptions.cpp" -o exceptions "$TENON_SO" \
        -Wl,-rpath,"$build" >out 2>&1 && timeout 100 ./exceptions >out 2>&1 ||
        wrong "exceptions, $compiler: $(head -5 out)"
done
[ $tried = 1 ] || need g++
exit $wrong
