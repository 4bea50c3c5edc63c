#!/bin/sh
# An apt repository of packages of Debian: repository.sh DEBS OUT [KEY]. The release of Debian is in the name of each (~deb12u1).
# With the id of a GnuPG key it is signed; GNUPGHOME says where the key is. petrel.asc there is its public part.
set -eu
. "$(dirname "$0")/common.sh"
debs=$1 out=$2 key=${3:-}
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)
for suite in 12:bookworm 13:trixie; do
    set -- "$debs"/*~deb"${suite%%:*}"u*.deb
    [ -e "$1" ] || continue
    suite_name=${suite#*:}
    pool=pool/$suite_name
    mkdir -p "$out/$pool"
    install -m 644 "$@" "$out/$pool/"
    for architecture in amd64 arm64; do
        index=$out/dists/$suite_name/main/binary-$architecture
        mkdir -p "$index"
        (cd "$out" && apt-ftparchive --arch "$architecture" packages "$pool") >"$index/Packages"
        gzip -n9k "$index/Packages"
    done
    (cd "$out/dists/$suite_name" && apt-ftparchive -o APT::FTPArchive::Release::Origin=Petrel -o APT::FTPArchive::Release::Label=Petrel \
        -o APT::FTPArchive::Release::Suite="$suite_name" -o APT::FTPArchive::Release::Codename="$suite_name" \
        -o APT::FTPArchive::Release::Architectures='amd64 arm64' -o APT::FTPArchive::Release::Components=main release .) |
        sed "s/^Date: .*/Date: $(date -u -R -d "@$SOURCE_DATE_EPOCH")/" >"$out/Release.$suite_name"
    mv "$out/Release.$suite_name" "$out/dists/$suite_name/Release"
    [ -z "$key" ] || gpg --batch --yes -q -u "$key" --clearsign -o "$out/dists/$suite_name/InRelease" "$out/dists/$suite_name/Release"
done
[ -z "$key" ] || gpg --batch --armor --export "$key" >"$out/petrel.asc"
