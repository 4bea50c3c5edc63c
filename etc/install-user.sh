#!/bin/sh
# The user of the daemon and its spool, as `make install` on this system makes them: by systemd where that is there.
set -e
cd "$(dirname "$0")"
if command -v systemd-sysusers >/dev/null && command -v systemd-tmpfiles >/dev/null; then
    systemd-sysusers "$PWD/petrel.sysusers"
    systemd-tmpfiles --create "$PWD/petrel.tmpfiles"
    [ ! -d /run/systemd/system ] || systemctl daemon-reload
else
    getent passwd petrel >/dev/null ||
        useradd --system --user-group --no-create-home --home-dir /var/spool/petrel --shell /usr/sbin/nologin petrel
    install -d -o petrel -g petrel -m 711 /var/spool/petrel
fi
