/* base/log/log_prefix: each style to each target. */
#include "base/log/log_prefix.h"

#include "t/support/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const int64_t now_ms = INT64_C(1763460245007); /* 2025-11-18 10:04:05.007 UTC */

static void
is_prefix(enum log_target target, enum log_style style, enum log_level level,
          const char *program, const char *wanted)
{
    char got[LOG_PREFIX_MAX], want[LOG_PREFIX_MAX];
    struct log_prefix p = {.target = target,
                           .style = style,
                           .has_time = true,
                           .host = "mx1",
                           .date_s = -1,
                           .local_s = -1};
    const char *hash = strchr(wanted, '#'); /* our process id */
    snprintf(want, sizeof(want), "%s", wanted);
    if (hash != NULL)
        snprintf(want + (hash - wanted), sizeof(want) - (size_t)(hash - wanted), "%ld%s",
                 (long)getpid(), hash + 1);
    log_prefix_write(&p, level, program, now_ms, got);
    is_string(got, want, want);
}

/* The prefix of a line of JSON has the local time, its member "time" that of UTC. */
TEST(both_times)
{
    struct log_prefix p = {.target = LOG_TO_SYSLOG,
                           .style = LOG_STYLE_JSON,
                           .date_s = -1,
                           .local_s = -1};
    char prefix[LOG_PREFIX_MAX], time[LOG_TIME_SIZE];
    for (int i = 0; i < 2; i++) {
        log_prefix_write(&p, LOG_LEVEL_INFO, "smtp", now_ms + i, prefix);
        is_number(log_prefix_time(&p, now_ms + i, time), 24, "the length");
        is_string(time, i == 0 ? "2025-11-18T10:04:05.007Z" : "2025-11-18T10:04:05.008Z",
                  "UTC in the line");
        ok_named(strncmp(prefix, "<22>Nov 18 11:04:05 ", 20) == 0, "before it local");
    }
}

TEST(journal_stream)
{
    struct stat info;
    char value[80];
    if (fstat(STDERR_FILENO, &info) != 0)
        abort();
    unsetenv("JOURNAL_STREAM");
    ok_named(!log_prefix_is_journal(STDERR_FILENO), "no journal");
    snprintf(value, sizeof(value), "%ju:%ju", (uintmax_t)info.st_dev,
             (uintmax_t)info.st_ino);
    setenv("JOURNAL_STREAM", value, 1);
    ok_named(log_prefix_is_journal(STDERR_FILENO), "the journal");
    ok_named(!log_prefix_is_journal(-1), "a descriptor that is none");
    snprintf(value, sizeof(value), "%ju:%ju", (uintmax_t)info.st_dev,
             (uintmax_t)info.st_ino + 1);
    setenv("JOURNAL_STREAM", value, 1);
    ok_named(!log_prefix_is_journal(STDERR_FILENO), "it was redirected");
    setenv("JOURNAL_STREAM", "x:y", 1);
    ok_named(!log_prefix_is_journal(STDERR_FILENO), "junk is none");
}

int
main(void)
{
    setenv("TZ", "CET-1", 1);
    is_prefix(LOG_TO_STDERR, LOG_STYLE_PETREL, LOG_LEVEL_INFO, "queue",
              "2025-11-18T10:04:05.007Z queue: ");
    is_prefix(LOG_TO_STDERR, LOG_STYLE_POSTFIX, LOG_LEVEL_INFO, "queue",
              "2025-11-18T10:04:05.007Z mx1 postfix/qmgr[#]: ");
    is_prefix(LOG_TO_STDERR, LOG_STYLE_JSON, LOG_LEVEL_INFO, "queue", "");
    is_prefix(LOG_TO_JOURNAL, LOG_STYLE_PETREL, LOG_LEVEL_ERROR, "main", "<3>main: ");
    is_prefix(LOG_TO_JOURNAL, LOG_STYLE_POSTFIX, LOG_LEVEL_WARNING, "main",
              "<4>postfix/master[#]: ");
    is_prefix(LOG_TO_JOURNAL, LOG_STYLE_JSON, LOG_LEVEL_DEBUG, "main", "<7>");
    is_prefix(LOG_TO_SYSLOG, LOG_STYLE_PETREL, LOG_LEVEL_INFO, "smtpd",
              "<22>Nov 18 11:04:05 petrel/smtpd[#]: ");
    is_prefix(LOG_TO_SYSLOG, LOG_STYLE_POSTFIX, LOG_LEVEL_WARNING, "local",
              "<20>Nov 18 11:04:05 postfix/virtual[#]: ");
    is_prefix(LOG_TO_SYSLOG, LOG_STYLE_JSON, LOG_LEVEL_ERROR, "main",
              "<19>Nov 18 11:04:05 petrel[#]: ");
    tap_tests("");
    return done();
}
