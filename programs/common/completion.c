/* completion.c — see completion.h. The script contains the names of the option tables: for each command a line
 * "command: --option=choices ...", where the choices are "|"-separated, "file", "folder", or empty for
 * other values; an option without "=" is a flag. */
#include "completion.h"

#include "command_line.h"

#include <string.h>

static void put_options(const option *o)
{
    for (; o && o->name; o++) {
        const bool folder = o->value && !strcmp(o->value, "DIR");
        printf(" --%s", o->name);
        if (o->kind != KIND_FLAG) printf("=%s", o->choices ? o->choices : folder ? "folder" : is_path(o) ? "file" : "");
    }
}

/* "PROGRAM" is replaced by the program's name. */
static const char script[] =
    "_PROGRAM()\n"
    "{\n"
    "    local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD-1]} command='' name values i all=''\n"
    "    COMPREPLY=()\n"
    "    if [ \"$word\" = = ]; then word=''; elif [ \"$before\" = = ]; then before=${COMP_WORDS[COMP_CWORD-2]}; fi\n"
    "    for ((i = 1; i < COMP_CWORD; i++)); do\n"
    "        case ${COMP_WORDS[i]} in\n"
    "            -*) case \" $(_PROGRAM_options '') \" in *\" ${COMP_WORDS[i]}=\"*) i=$((i + 1)) ;; esac ;;\n"
    "            @*) ;;\n"
    "            *) command=${COMP_WORDS[i]} && break ;;\n"
    "        esac\n"
    "    done\n"
    "    for name in $(_PROGRAM_options \"$command\"); do\n"
    "        all=\"$all ${name%%=*}\"\n"
    "        if [ \"${name%%=*}\" != \"$before\" ] || [ \"$name\" = \"$before\" ]; then continue; fi\n"
    "        values=${name#*=}\n"
    "        local IFS=$'\\n'\n"
    "        case $values in\n"
    "            file) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n"
    "            folder) COMPREPLY=($(compgen -d -- \"$word\")) ;;\n"
    "            *) COMPREPLY=($(IFS=' ' compgen -W \"${values//|/ }\" -- \"$word\")) ;;\n"
    "        esac\n"
    "        return\n"
    "    done\n"
    "    case $word in\n"
    "        -*) ;;\n"
    "        *)\n"
    "            case $command in\n"
    "                '' | help) all=$(_PROGRAM_options commands) ;;\n"
    "                completion) all='bash zsh fish' ;;\n"
    "                *) local IFS=$'\\n' && COMPREPLY=($(compgen -f -- \"$word\")) && return ;;\n"
    "            esac ;;\n"
    "    esac\n"
    "    COMPREPLY=($(compgen -W \"$all\" -- \"$word\"))\n"
    "}\n"
    "complete -o filenames -F _PROGRAM PROGRAM\n";

static void put_text(const char *text, const char *name)
{
    static const char marker[] = "PROGRAM";
    for (const char *at; (at = strstr(text, marker)); text = at + strlen(marker))
        printf("%.*s%s", (int)(at - text), text, name);
    printf("%s", text);
}

static void put_script(const program *p, bool zsh)
{
    if (zsh) printf("autoload -U +X bashcompinit && bashcompinit\n");
    printf("_%s_options()\n{\n    case $1 in\n", p->name);
    for (const command *c = p->commands; c->name; c++) {
        printf("        %s) echo '", c->name);
        put_options(c->options), put_options(common_options);
        printf("' ;;\n");
    }
    printf("        commands) echo '");
    for (const command *c = p->commands; c->name; c++) printf("%s ", c->name);
    printf("help completion' ;;\n        *) echo '");
    put_options(common_options);
    printf("' ;;\n    esac\n}\n");
    put_text(script, p->name);
}

/* fish has a command for each option; `of` is the command, NULL for those of every command. */
static void put_fish_options(const char *name, const char *of, const option *o)
{
    for (; o && o->name; o++) {
        const bool folder = o->value && !strcmp(o->value, "DIR");
        printf("complete -c %s", name);
        if (of) printf(" -n '__fish_seen_subcommand_from %s'", of);
        printf(" -l %s", o->name);
        if (o->kind == KIND_FLAG) printf("\n");
        else if (folder) printf(" -x -a '(__fish_complete_directories)'\n");
        else if (!o->choices) printf(is_path(o) ? " -r -F\n" : " -x\n");
        else {
            printf(" -x -a '");
            for (const char *c = o->choices; *c; c++) putchar(*c == '|' ? ' ' : *c);
            printf("'\n");
        }
    }
}

static void put_fish(const program *p)
{
    printf("complete -c %s -n __fish_use_subcommand -f -a '", p->name);
    for (const command *c = p->commands; c->name; c++) printf("%s ", c->name);
    printf("help completion'\n");
    printf("complete -c %s -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n", p->name);
    for (const command *c = p->commands; c->name; c++) put_fish_options(p->name, c->name, c->options);
    put_fish_options(p->name, NULL, common_options);
}

int completion_print(const program *p, const char *shell)
{
    const bool zsh = shell && !strcmp(shell, "zsh"), fish = shell && !strcmp(shell, "fish");
    if (!shell || (!zsh && !fish && strcmp(shell, "bash") != 0))
        return program_usage("completion needs a shell, bash, zsh or fish%s%s; for example: "
                             "source <(%s completion bash)",
                             shell ? ", got " : "", shell ? shell : "", p->name);
    if (fish) put_fish(p);
    else put_script(p, zsh);
    return EXIT_OK;
}
