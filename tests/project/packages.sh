#!/usr/bin/env bash
# Debian packages: packaging/deb makes four; lintian, if installed, has no complaint. From a folder with their files, a
# program is built by find_package with components, and the programs run; their pages and completions exist.
. "$(dirname "$0")/common.sh"
need cmake cpack dpkg-deb dpkg-shlibdeps file
outside=$root/tests/outside
mkdir -p "$build/project/packages" && cd "$build/project/packages"
find . -mindepth 1 -maxdepth 1 ! -name work -exec rm -rf {} +

"$root/packaging/deb" >deb.log 2>&1 || { wrong "packaging/deb fails: $(tail -n 20 deb.log)" && exit 1; }
for package in libtenon0.2 libtenon-dev tenon tenon-doc; do
    file=$(find "$root/build/packages" -maxdepth 1 -name "${package}_*.deb")
    [ -f "$file" ] || { wrong "no package $package" && exit 1; }
    dpkg -x "$file" there
    dpkg-deb -f "$file" Depends | sed "s/^/$package: /" >>depends
done
grep -q '^tenon: .*libtenon0\.2' depends || wrong "tenon does not depend on libtenon0.2: $(cat depends)"
grep -q '^libtenon-dev: .*libtenon0\.2' depends || wrong "libtenon-dev does not depend on libtenon0.2: $(cat depends)"
if command -v lintian >/dev/null; then
    findings < <(lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs \
        "$root"/build/packages/*.deb 2>&1)
fi

for target in tenon nn models; do
    if cmake -S "$outside" -B "program-$target" -DLANGUAGE=C -DTARGET=$target "-DCOMPONENTS=nn;text;models" \
        -DCMAKE_PREFIX_PATH="$PWD/there/usr" >log 2>&1 && cmake --build "program-$target" >>log 2>&1; then
        grep -q '^tenon 0\.2' <("program-$target/program") || wrong "the program with tenon::$target fails"
    else
        wrong "tenon::$target: $(tail -n 20 log)"
    fi
done

so=$(find there -name 'libtenon.so.*.*.*')
for program in there/usr/bin/tenon-*; do
    name=${program##*/}
    LD_LIBRARY_PATH=${so%/*} "$program" --version >out 2>&1 || wrong "$name does not run: $(cat out)"
    for file in man/man1/$name.1.gz bash-completion/completions/$name zsh/vendor-completions/_$name \
        fish/vendor_completions.d/$name.fish; do
        [ -s "there/usr/share/$file" ] || wrong "$file is missing"
    done
    grep -q "^Usage: $name " < <(LD_LIBRARY_PATH=${so%/*} "$program" --help) || wrong "$name --help has another name"
    hint=$(LD_LIBRARY_PATH=${so%/*} "$program" --no-such-option 2>&1 || true)
    [[ $hint == *"Try '$name --help'"* ]] || wrong "$name has the hint of another name: $hint"
    grep -q "$name\$" "there/usr/share/bash-completion/completions/$name" || wrong "no completion of $name"
done
for file in doc/tenon-doc/html/index.html doc/tenon-doc/html/api/tn_gelu.html man/man3/tn_gelu.3.gz; do
    [ -s "there/usr/share/$file" ] || wrong "$file is missing"
done
[ "$(find there/usr/bin -type f | wc -l)" = 9 ] || wrong "not nine programs: $(ls there/usr/bin)"
exit $wrong
