#!/bin/sh
# Fetches and unpacks the sources of Debian packages, patched as Debian patches them: sources.sh DIRECTORY PACKAGE...
# The lists of apt are a set of its own in the directory: nothing of this machine changes, and nobody has to be root. apt
# verifies what it fetches. A source that is there already stays.
set -eu
directory=$1
shift
missing=
for package; do [ -d "$directory/$package" ] || missing="$missing $package"; done
[ -n "$missing" ] || exit 0
apt=$directory/apt
mkdir -p "$apt/parts" "$apt/lists/partial" "$apt/cache/archives/partial"
apt=$(cd "$apt" && pwd)
codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
# The entries of the system for this release, as entries of sources. Those of others have none.
for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
    [ -s "$list" ] && grep -q "^[^#]*\b$codename\b" "$list" || continue
    sed 's/^deb /deb-src /; s/^Types:.*/Types: deb-src/' "$list" >"$apt/parts/${list##*/}"
done
apt_get() {
    apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$apt/parts" -o Dir::State::Lists="$apt/lists" \
        -o Dir::Cache="$apt/cache" -o APT::Sandbox::User="$(id -un)" "$@"
}
apt_get update
for package in $missing; do
    work=$directory/$package.new
    rm -rf "$work"
    mkdir -p "$work"
    (cd "$work" && apt_get source --only-source --download-only "$package" && dpkg-source -x ./*.dsc source)
    sed -n 's/^Version: *//p;T;q' "$work"/*.dsc >"$work/source/.version"
    mv "$work/source" "$directory/$package"
    rm -rf "$work"
done
