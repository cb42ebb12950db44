# Installs packages of the distribution and prints the purpose of each. Used by tests/run, examples/run and bench/run.
# shellcheck shell=bash

stop() # MESSAGE...
{
    printf '%s: %s\n' "$0" "$*" >&2
    exit 1
}

# Homebrew's names of LIST's packages, and the GNU tools that the scripts of tests/ use.
brew_names()
{
    local pair names=
    for pair in cmake=cmake ninja-build=ninja pkg-config=pkgconf libutf8proc-dev=utf8proc libpng-dev=libpng \
        check='check bash coreutils findutils gawk gnu-sed'; do
        ! grep -q "^${pair%%=*}|" <<<"$1" || names+=" ${pair#*=}"
    done
    echo "$names"
}

# install_missing LIST WHO THEN: installs the missing packages of LIST, which has a line "package|purpose" for each.
# Without apt-get it stops: WHO starts the message, as in "Tenon's tests need"; THEN is the command to run after a
# manual installation. If no package is missing, the network is not used.
install_missing()
{
    local list=$1 who=$2 then=$3 missing=() package why as_root=()
    if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
        echo "$0: apt-get is not available. $who these packages (Debian's names):" >&2
        while IFS='|' read -r package why; do
            [ -z "$package" ] || printf '  %-22s %s\n' "$package" "$why" >&2
        done <<<"$list"
        ! command -v brew >/dev/null || echo "on macOS: brew install$(brew_names "$list")" >&2
        stop "install them with the package manager of your system, then run: $then"
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
            stop "sudo is missing; run as root: apt-get install --no-install-recommends ${missing[*]}"
        as_root=(sudo)
    fi
    local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q)
    "${apt[@]}" update || echo "$0: apt-get update failed; using the existing package lists" >&2
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" ||
        stop "apt-get failed to install ${missing[*]}"
}
