# Installs packages of the distribution, saying which and what for; tests/run and bench/run --install-peers share it.
# shellcheck shell=bash

stop() # WORDS...
{
    printf '%s: %s\n' "$0" "$*" >&2
    exit 1
}

# install_missing LIST WHO THEN: LIST has a line "package|what for" for each; WHO needs them; THEN is what to run once
# they are there, where there is no apt-get. With none missing the network is not touched.
install_missing()
{
    local list=$1 who=$2 then=$3 missing=() package why as_root=()
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        echo "$0 knows only Debian's package manager, which is not here. $who, by Debian's names:" >&2
        while IFS='|' read -r package why; do
            [ -z "$package" ] || printf '  %-22s %s\n' "$package" "$why" >&2
        done <<<"$list"
        stop "install these in your system's way, then run: $then"
    fi
    while IFS='|' read -r package why; do
        [ -z "$package" ] && continue
        # shellcheck disable=SC2016 # the braces are dpkg-query's
        case $(dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null) in
        *'install ok installed'*) ;;
        *)
            [ ${#missing[@]} -gt 0 ] || echo "$0: packages to install:"
            printf '  %-22s %s\n' "$package" "$why"
            missing+=("$package")
            ;;
        esac
    done <<<"$list"
    [ ${#missing[@]} -gt 0 ] || return 0
    if [ "$(id -u)" != 0 ]; then
        command -v sudo >/dev/null ||
            stop "this needs root, and there is no sudo. As root: apt-get install --no-install-recommends ${missing[*]}"
        as_root=(sudo)
    fi
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q)
    "${apt[@]}" update || echo "$0: apt-get update failed; trying with the lists that are there" >&2
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" ||
        stop "apt-get could not install ${missing[*]}"
}
