#!/bin/sh
# The architecture as a test: who may include whom, and who knows which outside thing.
cd "$(dirname "$0")/.." || exit 1
n=0 bad=0
result() {
    n=$((n + 1))
    if [ -z "$2" ]; then echo "ok $n - $1"; else echo "not ok $n - $1"; echo "$2" | sed 's/^/#   /'; bad=1; fi
}

# A folder includes itself and what lies below it.
may() {
    dir=$1
    shift
    result "$dir includes only $dir $*" "$(grep -Ho '^#include "[a-z]*/' "$dir"/*.[ch] 2>/dev/null |
        sed 's,:#include "\(.*\)/, \1,' | while read -r file other; do
            case " $dir $* " in *" $other "*) ;; *) echo "$file includes $other/" ;; esac
        done)"
}
may base
may mime base
may sched base mime
may queue base mime sched
may smtp base mime sched queue
may defrag base mime sched queue
may admin base mime sched queue

sources=$(ls mta.c base/*.[ch] mime/*.[ch] sched/*.[ch] queue/*.[ch] smtp/*.[ch] defrag/*.[ch] admin/*.[ch] 2>/dev/null)

# Comments and strings do not count as calls.
code() { sed -e 's,//.*,,' -e 's/"\([^"\\]\|\\.\)*"/""/g' "$1" | awk '
    { line = $0; out = ""
      while (length(line)) {
          if (inside) { e = index(line, "*/"); if (!e) { line = ""; break } line = substr(line, e + 2); inside = 0 }
          else { b = index(line, "/*"); if (!b) { out = out line; line = "" } else { out = out substr(line, 1, b - 1); line = substr(line, b + 2); inside = 1 } }
      }
      print out }'; }

# only NAME PATTERN FILE...: outside these files nobody mentions it.
only() {
    name=$1 pattern=$2
    shift 2
    result "$name: only $*" "$(for f in $sources; do
        case " $* " in *" $f "*) continue ;; esac
        code "$f" | grep -nE "$pattern" | sed "s,^,$f:,"
    done)"
}
include() {
    name=$1 pattern=$2
    shift 2
    result "$name: only $*" "$(for f in $sources; do
        case " $* " in *" $f "*) continue ;; esac
        grep -nE "^#include $pattern" "$f" | sed "s,^,$f:,"
    done)"
}
include libev '<ev\.h>' base/loop.c
include c-ares '<ares' base/dns.c base/dns_reply.c
include mbedTLS '<(mbedtls|psa)/' $(ls base/tls*.c) base/tls_inside.h base/digest.c base/tag.c base/base64.c
include libidn2 '<idn2\.h>' base/idna.c
include iconv '<iconv\.h>' mime/charset.c
include hiredis '<hiredis/' defrag/registry_redis.c
include crypt '<crypt\.h>' base/verifier.c
include libseccomp '<seccomp\.h>' base/sandbox_seccomp.c
include sockets '<(sys/socket|sys/un|arpa/inet|netinet/.*|netdb)\.h>' $(ls base/net*.c base/net*.h base/dns*.c) base/sandbox_seccomp.c
only 'clock and chance' '(^|[^a-z_.>])(time|gettimeofday|clock_gettime|rand|random|getrandom|ev_time)\(' base/loop.c
only 'file calls' '(^|[^a-z_.>])(open|openat|creat|fopen|pread|pwrite|fsync|fdatasync|syncfs|truncate|ftruncate|fallocate|posix_fallocate|rename|renameat|link|linkat|symlink|symlinkat|readlink|readlinkat|unlink|unlinkat|rmdir|remove|mkdir|mkdirat|mkfifo|mkfifoat|opendir|fdopendir|stat|fstat|lstat|fstatat|flock|mmap|munmap|statfs|fstatfs|statvfs|fstatvfs|chmod|fchmod|chown|fchown|fsetxattr|utimensat|futimens)\(' $(ls base/disk*.c base/sandbox*.c) base/net.c base/net_listener.c base/net_outlet.c
only 'nameless system calls' '(^|[^a-z_.>])(syscall|ioctl)\(' base/disk.c base/disk_sync.c base/disk_nature.c base/sandbox_landlock.c base/identity.c
only 'fork and exec' '(^|[^a-z_.>])(fork|vfork|execve|execv|execvp|execl|execlp|system|popen|posix_spawn|pthread_create)\(' none
only 'unbounded calls' '(^|[^a-z_.>])(strcpy|strcat|sprintf|vsprintf|strtok|gets|alloca|atoi|scanf|sscanf)\(' none
only 'own memory' '(^|[^a-z_.>])(malloc|calloc|realloc|strdup|strndup)\(' base/memory.c
result 'no mutable globals' "$(for f in $sources; do case $f in *.c) code "$f" |
    grep -nE '^(static )?(unsigned |struct |enum |int|char|bool|size_t|u?int[0-9]+_t)[a-z_0-9 *]*(\[[^]]*\])?( =.*)?;' |
    grep -vE '\(|const|extern|typedef' | sed "s,^,$f:,";; esac; done)"
echo "1..$n"
exit $bad
