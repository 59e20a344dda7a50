# Sourced by every case before its own script.
set -eu
umask 022
cd "$W"
# Where programs complain, whatever a case does with its standard error.
exec 250>&2

# Runs a command that may fail; its status becomes part of what is compared.
rc() {
    local status=0
    "$@" || status=$?
    echo "status $status of ${1##*/}"
    [ "$status" = 0 ] || echo "status $status of ${1##*/}" >&250
}
