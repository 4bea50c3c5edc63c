#!/bin/sh
# The architecture as a test: who may include whom, and who knows which outside thing.
cd "$(dirname "$0")/.." || exit 1
n=0 bad=0
result() {
    n=$((n + 1))
    if [ -z "$2" ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; echo "$2" | sed 's/^/#   /'; bad=1; fi
}

# A room is a folder, or a folder in it. Each includes itself and what is named behind it; base+disk+loop is base/,
# base/disk/ and base/loop/.
rooms=""
may() {
    dir=$1
    shift
    set -- $(for room in "$@"; do printf '%s ' "${room%%+*}" $(echo "${room#"${room%%+*}"}" | sed "s,+, ${room%%+*}/,g"); done)
    rooms="$rooms $dir"
    result "$dir includes only $dir $*" "$(grep -Ho '^#include "[a-z/]*/' "$dir"/*.[ch] 2>/dev/null |
        sed 's,:#include "\(.*\)/, \1,' | while read -r file other; do
            case " $dir $* " in *" $other "*) ;; *) echo "$file includes $other/" ;; esac
        done)"
}
# base/ itself: values, which know none of its rooms.
may base
may base/loop base
may base/crypto base
may base/sandbox base
may base/dns base+loop+disk
may base/disk base+loop
may base/tls base+crypto+disk
may base/net base+disk+loop+tls
may base/log base+crypto+loop+net
may base/settings base+disk+log
may base/redis base+crypto+dns+loop+net+tls
may base/http base+crypto+disk+dns+log+loop+net+tls

may base/event base+crypto+disk+http+log+loop

may mime base+crypto+dns+log
may mime/auth base+crypto mime
may mime/parts base+crypto mime
may mime/report base+log mime+parts

may sched/limits base+settings
may sched/route base+crypto+http+settings mime sched/limits
may sched base sched/limits sched/route

# Below the manager the queue knows neither schedule nor SMTP.
may queue/envelope base+crypto
may queue/spool base+disk+log+loop+sandbox mime queue/envelope
may queue/journal base+loop queue/spool
may queue/recovery base+log+loop queue/envelope queue/spool queue/journal
may queue base+crypto+disk+event+log+loop queue/envelope queue/spool queue/journal queue/recovery
may queue/suppression base+disk+log+loop mime sched/limits queue/spool
may queue/manager base+disk+event+log+loop mime+report sched+limits+route queue+envelope+spool+suppression

may queue/poster base+crypto+disk+http+loop mime+parts sched+route queue+envelope+manager

may queue/group base+crypto+disk+event+log+loop+net+redis sched+limits queue+envelope+manager+spool+suppression
may queue/copies base+crypto+event+log+loop+redis sched queue+envelope+manager+spool queue/group

# The two sides of SMTP do not know each other. In: access (rules for clients)
# below server (a machine without sockets) below session. Out: trust, client (a machine without sockets), connect, delivery.
may smtp base+crypto queue/envelope
may smtp/access base+crypto+disk+dns+log+loop mime queue/manager sched+limits+route smtp
may smtp/server base+crypto+event+log mime+report queue+envelope+manager smtp smtp/access
may smtp/session base+crypto+disk+event+log+loop+net mime queue+manager+spool sched+limits+route smtp smtp/access smtp/server
may smtp/oauth base+crypto+disk+dns+http+log+loop
may smtp/trust base+crypto+disk+dns+http+log+loop+tls mime+auth queue+envelope+manager sched/route smtp
may smtp/client base+crypto+log mime+parts queue+envelope+manager sched+limits+route smtp smtp/trust
may smtp/connect base+crypto+dns+loop+net+tls queue/manager sched+route smtp/trust smtp/client
may smtp/delivery base+disk+dns+event+log+loop+net+tls queue+manager sched+limits+route smtp smtp/oauth smtp/trust smtp/client smtp/connect
# Messages and questions of the hosts of a group. It carries them, and knows no queue.
may smtp/peer base+crypto+dns+log+loop+net+tls queue/group smtp

may defrag/set base+crypto
may defrag/registry base+crypto+disk+log+loop+redis
may defrag/reassembly base+crypto+loop mime+parts+report queue+envelope+manager defrag/set
may defrag base+event+log+loop mime+report sched/route queue+envelope+manager defrag/set defrag/registry defrag/reassembly

# A section of the settings is a struct of the room that takes it.
may admin/settings base+crypto+disk+dns+event+log+net+sandbox+settings mime sched/route queue/copies queue/manager smtp/delivery smtp/oauth smtp/session defrag admin/history
may admin/history base+disk+event+log+loop sched/limits
# Views make numbers and words of the parts, answers serve questions by them, control carries both.
may admin/view base+log+loop+net+sandbox sched+limits queue+manager admin/settings
may admin/answer base+disk+event+log+loop+settings mime queue+envelope+manager+suppression smtp/oauth admin/settings admin/history admin/view
may admin/control base+log+loop+net queue+group+manager admin/answer
may admin/findings base+disk+dns+event+http+log+loop+net+sandbox+tls mime+auth sched/route queue smtp/access smtp/oauth smtp/trust admin/settings admin/view
may admin/page base+crypto
may admin/http base+crypto+event+http+log+loop+net
may admin/metrics base+disk+dns+event+log+loop+tls sched/limits queue/manager admin/view admin/control admin/http
may admin/post base+crypto+disk+log+loop mime+parts queue+envelope+manager+spool smtp/access smtp/session admin/answer admin/http
may admin/api base+event+log+loop+settings queue admin/history admin/view admin/answer admin/control admin/page admin/http admin/metrics admin/post
may admin/tool base+crypto+disk+dns+loop+net+sandbox+tls mime/auth admin/settings admin/view admin/post
may admin/command base+crypto+disk+dns+event+http+loop+net+sandbox+settings+tls queue+envelope+manager+suppression smtp/oauth admin/settings admin/history admin/view admin/answer admin/tool
may admin/sendmail base+loop+sandbox mime+parts queue+envelope+spool admin/settings admin/command
may admin/setup base+disk+loop+sandbox+settings mime sched/route queue/spool admin/settings admin/history admin/view admin/answer admin/tool admin/command admin/sendmail
may admin/import base+disk+sandbox+settings mime sched/route admin/settings admin/view admin/setup
# All parts come together here: the one room that knows both sides of SMTP.
may admin/startup base+crypto+disk+dns+event+http+log+loop+net+redis+sandbox sched/route queue+copies+group+manager+poster+spool smtp/access smtp/delivery smtp/oauth smtp/peer smtp/session smtp/trust defrag+registry admin/settings admin/history admin/view admin/control admin/findings admin/http admin/post admin/api
# One command line, all commands.
may admin/dispatch base/redis base/settings admin/settings admin/command admin/sendmail admin/setup admin/import admin/startup

result 'every folder is a room' "$(for d in */ */*/; do
    case $d in t/* | build* | man/ | etc/) continue ;; esac
    ls "$d"*.[ch] >/dev/null 2>&1 || continue
    case "$rooms " in *" ${d%/} "*) ;; *) echo "$d" ;; esac
done)"

# Rooms in an order in which each includes those before it alone.
result 'no circle between rooms' "$(grep -Ho '^#include "[a-z/]*/' $(for d in $rooms; do ls "$d"/*.[ch]; done) |
    sed 's,/[^/]*:#include ", ,; s,/$,,' | sort -u | tsort 2>&1 >/dev/null)"

sources=$(ls mta.c $(for d in $rooms; do ls "$d"/*.[ch]; done))

# Comments and strings do not count as calls. A line of this: FILE, a tab, NUMBER, a tab, what is left of the line.
stripped=$(mktemp)
trap 'rm -f "$stripped"' EXIT
awk 'FNR == 1 { inside = 0 }
    { line = $0; sub(/\/\/.*/, "", line); gsub(/"([^"\\]|\\.)*"/, "\"\"", line); out = ""
      while (length(line)) {
          if (inside) { e = index(line, "*/"); if (!e) { line = ""; break } line = substr(line, e + 2); inside = 0 }
          else { b = index(line, "/*"); if (!b) { out = out line; line = "" } else { out = out substr(line, 1, b - 1); line = substr(line, b + 2); inside = 1 } }
      }
      print FILENAME "\t" FNR "\t" out }' $sources >"$stripped"
# Lines of it that match, and do not match the second pattern; but for some files.
lines() {
    match=$1 but=$2 files=" $3 " awk -F '\t' 'BEGIN { match_ = ENVIRON["match"]; but = ENVIRON["but"]; files = ENVIRON["files"] }
        { code = substr($0, length($1) + length($2) + 3) }
        code ~ match_ && (but == "" || code !~ but) && !index(files, " " $1 " ") { print $1 ":" $2 ":" code }' "$stripped"
}

# only NAME PATTERN FILE...: outside these files nobody mentions it.
only() {
    name=$1 pattern=$2
    shift 2
    result "$name: only $*" "$(lines "$pattern" '' "$*")"
}
include() {
    name=$1 pattern=$2
    shift 2
    result "$name: only $*" "$(grep -nE "^#include $pattern" $sources | files=" $* " awk -F : '!index(ENVIRON["files"], " " $1 " ")')"
}
include libev '<ev\.h>' base/loop/loop.c
include c-ares '<ares' base/dns/dns.c base/dns/dns_question.c base/dns/dns_reply.c
include mbedTLS '<(mbedtls|psa)/' $(ls base/tls/*.c) base/tls/tls_internal.h base/crypto/digest.c base/crypto/tag.c base/crypto/base64.c base/crypto/sign.c
include libidn2 '<idn2\.h>' base/dns/idna.c
include iconv '<iconv\.h>' none
include hiredis '<hiredis/' base/redis/redis.c
include libsodium '<sodium' base/crypto/sign.c
include crypt '<crypt\.h>' base/crypto/verifier.c
include libseccomp '<seccomp\.h>' base/sandbox/sandbox_seccomp.c
include sockets '<(sys/socket|sys/un|arpa/inet|netinet/.*|netdb)\.h>' base/net_address.c base/net/socket.c $(ls base/dns/*.c) base/sandbox/sandbox_seccomp.c
only 'socket calls' '(^|[^a-z_.>])(socket|socketpair|bind|listen|accept4?|connect|shutdown|recv|recvfrom|recvmsg|send|sendto|sendmsg|getsockname|getpeername|getsockopt|setsockopt)\(' base/net/socket.c $(ls base/dns/*.c)
only 'clock and chance' '(^|[^a-z_.>])(time|gettimeofday|clock_gettime|rand|random|getrandom|ev_time)\(' base/loop/loop.c
only 'file calls' '(^|[^a-z_.>])(open|openat|creat|fopen|pread|pwrite|fsync|fdatasync|syncfs|truncate|ftruncate|fallocate|posix_fallocate|rename|renameat|link|linkat|symlink|symlinkat|readlink|readlinkat|unlink|unlinkat|rmdir|remove|mkdir|mkdirat|mkfifo|mkfifoat|opendir|fdopendir|stat|fstat|lstat|fstatat|flock|mmap|munmap|statfs|fstatfs|statvfs|fstatvfs|chmod|fchmod|chown|fchown|fsetxattr|utimensat|futimens)\(' $(ls base/disk/*.c base/sandbox/*.c) base/net/socket.c
only 'nameless system calls' '(^|[^a-z_.>])(syscall|ioctl)\(' base/disk/disk.c base/disk/disk_sync.c base/disk/disk_traits.c base/sandbox/sandbox.c base/sandbox/identity.c admin/view/terminal.c
only 'fork and exec' '(^|[^a-z_.>])(fork|vfork|execve|execv|execvp|execl|execlp|system|popen|posix_spawn|pthread_create)\(' none
only 'unbounded calls' '(^|[^a-z_.>])(strcpy|strcat|sprintf|vsprintf|strtok|gets|alloca|atoi|scanf|sscanf)\(' none
only 'own memory' '(^|[^a-z_.>])(malloc|calloc|realloc|strdup|strndup)\(' base/memory.c
result 'no mutable globals' "$(lines '^(static )?(unsigned |struct |enum |int|char|bool|size_t|u?int[0-9]+_t)[a-z_0-9 *]*(\[[^]]*\])?( =.*)?;' \
    '\(|const|extern|typedef' '' | grep '^[^:]*\.c:')"
echo "1..$n"
exit $bad
