#!/bin/sh
# A package for systems with RPM: rpm.sh TRIPLET PROGRAM VERSION FILE.
set -eu
. "$(dirname "$0")/common.sh"
triplet=$1 program=$2 version=$3 out=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage "$program" "$work/root"
for unit in petrel.service petrel@.service petrel.socket; do
    install -D -m 644 "$top/etc/$unit" "$work/root/usr/lib/systemd/system/$unit"
    sed -i 's,/usr/local/sbin,/usr/sbin,g' "$work/root/usr/lib/systemd/system/$unit"
done
find "$work/root" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
rpmbuild -bb --quiet --target "$(named "$triplet" rpm)-linux" --define "_topdir $work/rpm" --define "root $work/root" \
    --define "version_ $version" --define "packager $MAINTAINER" --define "summary $SUMMARY" --define '_buildhost localhost' \
    --define 'use_source_date_epoch_as_buildtime 1' --define 'clamp_mtime_to_source_date_epoch 1' --define '_build_id_links none' \
    --define '_binary_payload w9.gzdio' --define '__os_install_post %{nil}' --define 'debug_package %{nil}' "$top/etc/rpm/petrel.spec" >&2
cp "$work"/rpm/RPMS/*/*.rpm "$out"
