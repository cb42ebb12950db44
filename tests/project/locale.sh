#!/usr/bin/env bash
# In a locale that writes 1,5 for 1.5, the unit tests of code that reads and writes text must pass, including messages.
# The script creates the locale and first checks that it has the comma.
. "$(dirname "$0")/common.sh"
fresh locale
need localedef
localedef -i de_DE -f UTF-8 "$PWD/de_DE.utf8" >log 2>&1 || { echo "SKIPPED: localedef has no locales" && exit 77; }
export LOCPATH=$PWD
[ "$(LC_ALL=de_DE.UTF-8 locale decimal_point)" = , ] || wrong "the locale that was made has no comma"

export TENON_TEST_LOCALE=de_DE.UTF-8
for test in json json_write npy print safetensors safetensors_refused runlog report metrics scores vectors_files \
    tokenizer tokenizer_files sentencepiece subword module modules_basic schedule profile llama_files; do
    program=$build/bin/tests/test_$test
    [ -x "$program" ] || continue
    TENON_TEST_SLOW=1 "$program" >out.txt 2>&1 || wrong "in a locale with commas test_$test fails: $(tail -n 3 out.txt)"
done
TENON_TEST_LOCALE=none "$build/bin/tests/test_json" >/dev/null 2>&1 && wrong "a locale that is not there is not missed"
exit $wrong
