#!/bin/sh
# All that a release consists of, but no signature: release.sh VERSION OUT [TRIPLET...]. Of a tag, in a clone in which nothing
# is changed (ANY=1: of any commit). DEBIAN='bookworm trixie' names the releases of Debian, whose packages only root can build.
set -eu
. "$(dirname "$0")/common.sh"
version=$1 out=$2
shift 2
cd "$top"
[ -n "${ANY:-}" ] || [ "$(git describe --exact-match 2>/dev/null)" = "v$version" ] || fail "this is not the tag v$version (ANY=1: nevertheless)"
[ -z "$(git status --porcelain --untracked-files=no)" ] || fail 'files differ from the commit: git status'
rm -rf "$out"
mkdir -p "$out/debian"
out=$(cd "$out" && pwd)
git archive --format=tar --prefix="petrel-$version/" HEAD | gzip -n9 >"$out/petrel-$version.tar.gz"
images=
for triplet; do
    processor=$(named "$triplet" kernel)
    make -s image CROSS="$([ "$triplet" = "$(gcc -dumpmachine)" ] || echo "$triplet")" IMAGE="build-image-$processor" >&2
    program=$out/petrel-$version-linux-$processor
    cp petrel-static "$program"
    etc/release/apk.sh "$triplet" "$program" "$version" "$out/petrel-$version-r0.$(named "$triplet" alpine).apk"
    etc/release/ipk.sh "$triplet" "$program" "$version" "$out/petrel_$version-1_$processor.ipk"
    etc/release/rpm.sh "$triplet" "$program" "$version" "$out/petrel-$version-1.$(named "$triplet" rpm).rpm"
    images="$images build-image-$processor/petrel.oci.tar"
done
# shellcheck disable=SC2086
etc/release/index.py "$out/petrel-$version.oci.tar" $images
etc/release/chart.py etc/helm/petrel "$version" "$out/petrel-chart-$version.tgz"
for suite in ${DEBIAN-bookworm trixie}; do etc/release/debian.sh "$suite" "$out/debian" aarch64-linux-gnu; done
etc/release/sbom.py "$version" build-musl/source "$out"/petrel-"$version"-linux-* >"$out/petrel-$version.spdx.json"
(cd "$out" && find . -type f ! -name SHA256SUMS -printf '%P\n' | sort | xargs sha256sum >SHA256SUMS)
