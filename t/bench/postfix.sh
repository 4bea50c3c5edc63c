#!/bin/sh
# Debian's Postfix as a peer to measure against, in a root of its own: nothing is installed.
#   setup             fetches the packages and unpacks them there (needs apt's lists, 40 MB)
#   start SINK_PORT   on 127.0.0.1, an empty queue, relays everything to 127.0.0.1:SINK_PORT
#   port | pid        of the running one; its processes are that pid's process group
#   queued            messages in its queue
#   stop              ends that process group
# PETREL_BENCH_POSTFIX_SETTINGS: lines for main.cf, the last ones count.
# PETREL_BENCH_POSTFIX names the folder (/opt/petrel-bench-postfix). All of it needs root.
set -eu
top=${PETREL_BENCH_POSTFIX:-/opt/petrel-bench-postfix}
root=$top/root
queue=$root/var/spool/postfix
uid=65101 gid=65101 drop=65102 # exist in that root only

die() { echo "postfix.sh: $*" >&2; exit 1; }
pid() { cat "$top/pid" 2>/dev/null || die 'not running'; }
# Live members of the process group $1.
group() {
    cat /proc/[0-9]*/stat 2>/dev/null | sed 's/^\([0-9]*\) (.*) /\1 /' |
        awk -v group="$1" '$4 == group && $2 != "Z" { print $1 }'
}

setup() {
    [ -x "$root/usr/lib/postfix/sbin/master" ] && return
    [ "$(id -u)" = 0 ] || die 'setup needs root'
    mkdir -p "$top/apt/archives/partial" "$root"
    # As if nothing were installed: all that Postfix depends on comes along.
    : >"$top/apt/status"
    apt-get -y -q -o Dir::State::status="$top/apt/status" -o Dir::Cache="$top/apt" \
        -o APT::Sandbox::User=root --no-install-recommends --download-only install \
        postfix >"$top/apt/log" 2>&1 ||
        { tail -5 "$top/apt/log" >&2; die 'cannot fetch it (apt-get update first?)'; }
    for package in "$top"/apt/archives/*.deb; do dpkg -x "$package" "$root"; done
    for dir in bin sbin lib lib64; do
        [ -e "$root/$dir" ] || [ ! -d "$root/usr/$dir" ] || ln -s "usr/$dir" "$root/$dir"
    done
    mkdir -p "$root/dev" "$root/etc/postfix" "$root/var/log" "$root/tmp"
    [ -c "$root/dev/null" ] || mknod -m 666 "$root/dev/null" c 1 3
    [ -c "$root/dev/urandom" ] || mknod -m 666 "$root/dev/urandom" c 1 9
    cat >"$root/etc/passwd" <<E
root:x:0:0::/:/bin/sh
postfix:x:$uid:$gid::/:/bin/false
nobody:x:65534:65534::/:/bin/false
E
    cat >"$root/etc/group" <<E
root:x:0:
postfix:x:$gid:
postdrop:x:$drop:
nogroup:x:65534:
E
    printf 'passwd: files\ngroup: files\nhosts: files\n' >"$root/etc/nsswitch.conf"
    printf '127.0.0.1 localhost relay.example\n' >"$root/etc/hosts"
    : >"$root/etc/resolv.conf"
    "$0" version
}

# The programs and limits are the package's; what is set is where the mail goes, that no
# look-up leaves this host, and what is known to make Postfix faster at this job.
configure() {
    cat >"$root/etc/postfix/main.cf" <<E
compatibility_level = 3.6
queue_directory = /var/spool/postfix
data_directory = /var/lib/postfix
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
maillog_file = /var/log/postfix.log
myhostname = relay.example
inet_interfaces = 127.0.0.1
inet_protocols = ipv4
mynetworks = 127.0.0.0/8
mydestination =
local_recipient_maps =
alias_maps =
relayhost = [127.0.0.1]:$2
disable_dns_lookups = yes
smtpd_peername_lookup = no
smtpd_relay_restrictions = permit_mynetworks, reject
receive_override_options = no_address_mappings, no_header_body_checks
in_flow_delay = 0
default_destination_concurrency_limit = 5
smtp_connection_reuse_time_limit = 300s
smtpd_client_connection_count_limit = 0
message_size_limit = 52428800
${3:-}
E
    cat >"$root/etc/postfix/master.cf" <<E
127.0.0.1:$1 inet n - n - 250 smtpd
pickup     unix n - n 60 1 pickup
cleanup    unix n - n - 0 cleanup
qmgr       unix n - n 300 1 qmgr
rewrite    unix - - n - - trivial-rewrite
bounce     unix - - n - 0 bounce
defer      unix - - n - 0 bounce
trace      unix - - n - 0 bounce
flush      unix n - n 1000? 0 flush
proxymap   unix - - n - - proxymap
smtp       unix - - n - - smtp
relay      unix - - n - - smtp
error      unix - - n - - error
retry      unix - - n - - error
anvil      unix - - n - 1 anvil
scache     unix - - n - 1 scache
tlsmgr     unix - - n 1000? 1 tlsmgr
tlsproxy   unix - - n - 0 tlsproxy
postlog    unix-dgram n - n - 1 postlogd
E
}

start() {
    [ -x "$root/usr/lib/postfix/sbin/master" ] || die 'not set up'
    [ "$(id -u)" = 0 ] || die 'start needs root'
    [ ! -f "$top/pid" ] || stop
    port=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1,
        LocalAddr => "127.0.0.1")->sockport')
    configure "$port" "$1" "$([ "${2:-}" != hold ] || echo 'smtpd_client_restrictions = static:HOLD')
${PETREL_BENCH_POSTFIX_SETTINGS:-}"
    rm -rf "$queue" "$root/var/lib/postfix" "$root/var/log/postfix.log"
    install -d "$queue" "$queue/pid"
    install -d -o $uid -m 700 "$root/var/lib/postfix"
    for dir in active bounce corrupt defer deferred flush hold incoming private saved trace; do
        install -d -o $uid -m 700 "$queue/$dir"
    done
    install -d -o $uid -g $drop -m 1730 "$queue/maildrop"
    install -d -o $uid -g $drop -m 2710 "$queue/public"
    chroot "$root" /usr/lib/postfix/sbin/master -c /etc/postfix </dev/null >"$top/out" 2>&1 &
    echo $! >"$top/pid"
    echo "$port" >"$top/port"
}

stop() {
    [ -f "$top/pid" ] || return 0
    master=$(pid)
    # Only ever ours: the pid may have been given to somebody else since.
    case $(readlink "/proc/$master/exe" 2>/dev/null) in
    "$root"/*) kill "$master" 2>/dev/null || true ;;
    esac
    for _ in $(seq 50); do
        [ -n "$(group "$master")" ] || break
        sleep 0.1
    done
    for left in $(group "$master"); do
        case $(readlink "/proc/$left/exe" 2>/dev/null) in
        "$root"/*) kill -KILL "$left" 2>/dev/null || true ;;
        esac
    done
    rm -f "$top/pid" "$top/port"
}

case ${1:-} in
setup) setup ;;
start) start "${2:?the port of the sink}" "${3:-}" ;;
stop) stop ;;
pid) pid ;;
port) cat "$top/port" 2>/dev/null || die 'not running' ;;
queued) find "$queue/incoming" "$queue/active" "$queue/deferred" -type f | wc -l ;;
version) ls "$top/apt/archives" | sed -n 's/^postfix_\([^_]*\)_.*/Postfix \1/p' ;;
*) sed -n '2,9s/^# \{0,1\}//p' "$0" >&2; exit 64 ;;
esac
