#!/bin/sh
# Fetches the packages of other mail programs for the tests without installing a second mail
# system: each is unpacked into a folder of its own, /opt/petrel-test-NAME.
set -e
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
chmod 777 .

# get NAME PACKAGE FILE: unless FILE of it is there already.
get() {
    target=/opt/petrel-test-$1
    [ "$1" != postfix ] || target=${POSTFIX_ROOT:-$target}
    [ ! -e "$target/$3" ] || return 0
    apt-get download -q "$2"
    mkdir -p "$target"
    dpkg -x "$2"_*.deb "$target"
    # The libraries that it names; its own it brings along.
    libraries=$(dpkg-deb -f "$2"_*.deb Depends | tr ',|' '\n\n' | awk '$1 ~ /^lib/ { print $1 }' | sort -u)
    [ -z "$libraries" ] ||
        env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends $libraries
}
get postfix postfix usr/sbin/smtp-sink
get exim exim4-daemon-light usr/sbin/exim4
get mpack mpack usr/bin/mpack
get faketime libfaketime usr/share/doc/libfaketime/copyright
get dma dma usr/sbin/dma
get opensmtpd opensmtpd usr/sbin/smtpd
get postsrsd postsrsd usr/sbin/postsrsd
get mta-sts postfix-mta-sts-resolver usr/bin/mta-sts-daemon
get nodemailer node-nodemailer usr/share/nodejs/nodemailer/package.json
# Readers of Postfix's log.
get pflogsumm pflogsumm usr/sbin/pflogsumm
get logwatch logwatch usr/share/logwatch/scripts/services/postfix
get fail2ban fail2ban usr/bin/fail2ban-regex
# Readers of syslog's socket.
get rsyslog rsyslog usr/sbin/rsyslogd
get busybox busybox bin/busybox
# A kernel for t/e2e/Guest.pm, and the programs of an NFS server that nobody starts here.
if [ "$(dpkg --print-architecture)" = amd64 ]; then
    get kernel "$(apt-cache depends linux-image-cloud-amd64 | awk '$1 == "Depends:" { print $2; exit }')" lib/modules
    get nfs nfs-kernel-server usr/sbin/rpc.mountd
fi
