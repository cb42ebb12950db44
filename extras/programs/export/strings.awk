# The lines of program/NAME.c as strings of C: const char *const template_NAME[].
BEGIN { print "/* Written by the build from the files of program/. */\n#include \"emit.h\"\n" }
FNR == 1 {
    if (open) print "    NULL,\n};"
    name = FILENAME
    sub(/^.*\//, "", name)
    sub(/\.c$/, "", name)
    print "const char *const template_" name "[] = {"
    open = 1
}
{
    gsub(/\\/, "&&")
    gsub(/"/, "\\\"")
    print "    \"" $0 "\","
}
END { print "    NULL,\n};" }
