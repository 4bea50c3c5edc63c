#!/bin/sh
# A package for OpenWrt: ipk.sh TRIPLET PROGRAM VERSION FILE. One file runs on all kinds of a processor, whose names differ:
# so it is for all, and a script refuses others.
set -eu
. "$(dirname "$0")/common.sh"
triplet=$1 program=$2 version=$3 out=$4
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
install -D -m 755 "$program" "$work/root/usr/sbin/petrel"
install -D -m 755 "$top/etc/openwrt/petrel.init" "$work/root/etc/init.d/petrel"
install -D -m 644 "$top/etc/openwrt/petrel.config" "$work/root/etc/config/petrel"
mkdir "$work/control"
cat >"$work/control/control" <<INFO
Package: petrel
Version: $version-1
Architecture: all
Maintainer: $MAINTAINER
Section: mail
License: ISC
Installed-Size: $(du -sb --apparent-size "$work/root" | cut -f1)
Description: $SUMMARY
INFO
echo /etc/config/petrel >"$work/control/conffiles"
sed "s/@PROCESSOR@/$(named "$triplet" kernel)/" "$top/etc/ipk/preinst" >"$work/control/preinst"
cp "$top/etc/ipk/postinst" "$top/etc/ipk/prerm" "$work/control/"
chmod 755 "$work"/control/p*
pack - -C "$work/root" . | gzip -n9 >"$work/data.tar.gz"
pack - -C "$work/control" . | gzip -n9 >"$work/control.tar.gz"
echo 2.0 >"$work/debian-binary"
pack - -C "$work" ./debian-binary ./control.tar.gz ./data.tar.gz | gzip -n9 >"$out"
