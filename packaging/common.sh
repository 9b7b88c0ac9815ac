# Sourced by build, stage, deb, rpm and tarball: where things are and what they are called.
set -euo pipefail
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$top"
target=${CARGO_TARGET_DIR:-$top/target}
# FERROFD_PORTABLE: for hosts with an older C library, or without OpenSSL 3, which is inside then.
portable=${FERROFD_PORTABLE:-}
# What `build` makes, and where the packages go.
programs="bacula-fd bsnapshot"
# Plugins, each in a package of its own. Their interface is for this processor only.
plugins=s3
[[ ${FERROFD_MACHINE:-$(uname -m)} == x86_64 ]] || plugins=
binaries="$programs${plugins:+ $plugins-fd.so}"
built=$target/packaging/program${portable:+-portable}
packages=${PACKAGES:-$target/packages${portable:+-portable}}

# PACKAGE_VERSION is for the tests, which need an upgrade.
version=${PACKAGE_VERSION:-$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"$/\1/p' Cargo.toml)}
# Older than the same version for newer hosts, which so is an upgrade.
revision=1${portable:+~portable}
# As dpkg and rpm order versions: 1.0.0~rc.1 is older than 1.0.0.
ordered=${version/-/\~}
# A provided version, so that "bacula-client depends on bacula-fd (>= 15.0.3-3)" is met, whatever Debian's revision.
stock_version=15.0.3
# FERROFD_MACHINE: packages for another machine, with that one's binary tools.
machine=${FERROFD_MACHINE:-$(uname -m)}
tools=
[[ $machine == "$(uname -m)" ]] || tools=$machine-linux-gnu-

# Same commit, same bytes: the time in every archive is the commit's.
if [[ -z ${SOURCE_DATE_EPOCH:-} ]]; then
    SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.lock)
fi
export SOURCE_DATE_EPOCH LC_ALL=C TZ=UTC
umask 022

die() {
    echo "${0##*/}: $*" >&2
    exit 1
}

# Each file and folder below $1 gets the commit's time, and a mode that no umask decides.
settle() {
    chmod -R u+rwX,go+rX,go-w "$1"
    find "$1" -print0 | xargs -0 touch --no-dereference --date="@$SOURCE_DATE_EPOCH"
}

# Lays the debug information of programs and plugins below $1, where debuggers look for it.
stage_debug() {
    local name id
    for name in $binaries; do
        id=$(cat "$built/$name.build-id")
        install -D -m 644 "$built/$name.debug" "$1/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug"
    done
}

# The highest version of the C library that programs and plugins ask for.
glibc_floor() {
    for name in $binaries; do "${tools}objdump" -T "$built/$name" || exit 1; done | grep -oE 'GLIBC_[0-9.]+' | sed s/GLIBC_// | sort -Vu | tail -n 1
}
