#!/usr/bin/env bash
# Installs Tenon into an empty folder, moves it, and uses it by find_package, pkg-config (shared and static) and
# add_subdirectory, in C and C++. As a subdirectory it is configured, and a program compiled; `consumer.sh subdirectory`
# (--full) also builds and links the library and runs the program.
. "$(dirname "$0")/common.sh"
need cmake pkg-config c++
outside=$root/tests/outside
fresh "consumer${1:+_$1}"

run() # WHAT COMMAND...: the program must succeed and print its version
{
    local what=$1 out
    shift
    if ! out=$("$@" 2>&1) || ! grep -q '^tenon [0-9]' <<<"$out"; then wrong "$what: $out"; fi
}

built=program
project() # NAME LANGUAGE TARGET ARGUMENTS...
{
    local name=$1 language=$2 target=$3
    shift 3
    if cmake -S "$outside" -B "$name" -DLANGUAGE="$language" -DTARGET="$target" "$@" >"$name.log" 2>&1 &&
        cmake --build "$name" -j "${TENON_JOBS:-$(nproc)}" --target "$built" >>"$name.log" 2>&1; then
        [ $built != program ] || run "$name" "./$name/program"
    else
        wrong "$name: $(tail -n 40 "$name.log")"
    fi
}
subdirectory() # not optimised, with only what program.c uses
{
    local language
    for language in C CXX; do
        project subdirectory $language tenon_static -DSUBDIRECTORY="$root" -DCMAKE_BUILD_TYPE=None \
            -DCMAKE_C_FLAGS=-O0 -DTENON_MODELS=OFF -DTENON_DATA=OFF -DTENON_PARALLEL=OFF -DTENON_ISAS=
    done
}

[ "${1:-}" != subdirectory ] || { subdirectory; exit $wrong; }
built=object subdirectory

cmake --install "$build" --prefix "$PWD/first" >install.log 2>&1 || { cat install.log && exit 1; }
project installed C tenon -DCMAKE_PREFIX_PATH="$PWD/first"
mv first second
for target in tenon tenon_static; do
    project moved-c-$target C $target -DCMAKE_PREFIX_PATH="$PWD/second"
    project moved-cpp-$target CXX $target -DCMAKE_PREFIX_PATH="$PWD/second"
done

# Components: tenon::nn links neither utf8proc nor libpng.
for target in nn text models; do
    project component-$target C $target -DCMAKE_PREFIX_PATH="$PWD/second" "-DCOMPONENTS=nn;$target"
done
linked() # NAME: the libraries that the program is linked with, by Ninja or by make
{
    local file words=
    for file in "$1/build.ninja" "$1/CMakeFiles/program.dir/link.txt"; do
        [ ! -f "$file" ] || words+=$(grep -E 'LINK_LIBRARIES|-o program' "$file")
    done
    echo "$words"
}
[[ ! $(linked component-nn) =~ utf8proc|png ]] || wrong "tenon::nn links more than it needs"
[[ $(linked component-text) =~ utf8proc ]] || wrong "tenon::text does not link utf8proc"
! cmake -S "$outside" -B component-other -DLANGUAGE=C -DTARGET=nn -DCMAKE_PREFIX_PATH="$PWD/second" -DCOMPONENTS=gpu \
    >component-other.log 2>&1 || wrong "find_package accepts a component that does not exist"

pc=$(find second -name tenon.pc)
export PKG_CONFIG_PATH=$PWD/${pc%/*}
libdir=$(pkg-config --variable=libdir tenon)
# shellcheck disable=SC2046 # flags, one word each
for language in c cpp; do
    compiler=cc
    [ $language = cpp ] && compiler=c++
    if $compiler "$outside/program.$language" -o shared-$language $(pkg-config --cflags --libs tenon) >out 2>&1; then
        run "pkg-config, $language" env LD_LIBRARY_PATH="$libdir" ./shared-$language
    else
        wrong "pkg-config, $language: $(cat out)"
    fi
    if $compiler -static "$outside/program.$language" -o static-$language \
        $(pkg-config --static --cflags --libs tenon) >out 2>&1; then
        run "pkg-config --static, $language" ./static-$language
    else
        wrong "pkg-config --static, $language: $(cat out)"
    fi
done

# The build line of each example.
here=$PWD
while IFS=: read -r file line; do
    command=${line##*Build: } command=${command% \*/}
    (cd "$(dirname "$root/examples/$file")" && eval "${command/ -o / -o $here/}") >out 2>&1 ||
        wrong "examples/$file does not build by its line: $(cat out)"
done < <(cd "$root/examples" && grep -rHE '^( \*|//) Build: ' . | sed 's,^\./,,')
while read -r file; do
    wrong "$file has no line that builds it"
done < <(cd "$root" && grep -LE '^( \*|//) Build: ' examples/*.c examples/*.cpp examples/*/main.c)

# A plugin that computes with several threads and is then closed.
cat >plugin.c <<'END'
#include <tenon/tenon.h>
double plugin(void);
double plugin(void)
{
    tn_set_threads(2);
    const tn_scope s = tn_scope_begin();
    tn_tensor     *x = tn_ones(TN_SHAPE(512, 512));
    const double   y = tn_item(tn_mean(tn_matmul(x, x)));
    tn_scope_end(s);
    return y;
}
END
cat >host.c <<'END'
#include <dlfcn.h>
#include <unistd.h>
int main(void)
{
    for (int i = 0; i < 3; i++) {
        void *h = dlopen("./plugin.so", RTLD_NOW);
        if (!h) return 1;
        double (*plugin)(void);
        *(void **)&plugin = dlsym(h, "plugin");
        if (!plugin || plugin() != 512 || dlclose(h)) return 2;
        usleep(100000);
    }
    return 0;
}
END
# shellcheck disable=SC2046 # flags, one word each
cc -shared -fPIC plugin.c -o plugin.so $(pkg-config --cflags --libs tenon) && cc host.c -o host -ldl
LD_LIBRARY_PATH=$libdir ./host >out 2>&1 || wrong "a plugin that is closed ends the program: $?"

# C++20 has the keywords of C; with each installed compiler.
for compiler in g++ clang++; do
    command -v $compiler >/dev/null || continue
    # shellcheck disable=SC2046
    if $compiler -std=c++20 -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Werror \
        "$outside/keywords.cpp" -o keywords-$compiler $(pkg-config --cflags --libs tenon) >out 2>&1; then
        run "keywords.cpp, $compiler" env LD_LIBRARY_PATH="$libdir" ./keywords-$compiler
    else
        wrong "keywords.cpp, $compiler: $(cat out)"
    fi
done

# Only at the start of a path, so that "tests/project" does not match a checkout in /project.
place=$(sed 's/[].[^$*+?(){}|\\]/\\&/g' <<<"$root")
findings < <(grep -rIlE "(^|[^[:alnum:]._/-])$place(/|[^[:alnum:]._-]|\$)" second |
    sed 's/$/ names the place it was built in/')
exit $wrong
