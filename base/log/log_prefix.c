/* Time, program and priority before the text of a line. */
#include "base/log/log_prefix.h"

#include "base/net/net_outlet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { FACILITY_MAIL = 2 << 3, PROGRAM_MAX = 20 };

/* strftime() runs once in a second, not once in a line. */
size_t
log_prefix_time(struct log_prefix *p, int64_t now_ms, char out[LOG_TIME_SIZE])
{
    time_t seconds = (time_t)(now_ms / 1000);
    unsigned ms = (unsigned)(now_ms % 1000);
    struct tm utc;
    if (seconds != p->date_s) {
        p->date_length = 0;
        if (gmtime_r(&seconds, &utc) != NULL)
            p->date_length =
                strftime(p->date, LOG_DATE_SIZE, "%Y-%m-%dT%H:%M:%S", &utc);
        p->date_s = seconds;
    }
    memcpy(out, p->date, LOG_DATE_SIZE);
    char *end = out + p->date_length;
    *end++ = '.';
    *end++ = (char)('0' + ms / 100);
    *end++ = (char)('0' + ms / 10 % 10);
    *end++ = (char)('0' + ms % 10);
    *end++ = 'Z';
    *end = '\0';
    return (size_t)(end - out);
}

/* RFC 3164 §4.1.2: local time, a day of one digit after a space. */
static void
log_prefix_local_time(struct log_prefix *p, int64_t now_ms, char out[LOG_TIME_SIZE])
{
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm local;
    if (seconds != p->local_s &&
        (localtime_r(&seconds, &local) == NULL ||
         strftime(p->local, LOG_DATE_SIZE, "%b %e %H:%M:%S", &local) == 0))
        p->local[0] = '\0';
    p->local_s = seconds;
    snprintf(out, LOG_TIME_SIZE, "%s", p->local);
}

/* Postfix's daemon with that work. */
static const char *
postfix_program(const char *program)
{
    static const char *const names[][2] = {
        {"queue",    "qmgr"   },
        {"sched",    "qmgr"   },
        {"main",     "master" },
        {"local",    "virtual"},
        {"sendmail", "pickup" }
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (strcmp(program, names[i][0]) == 0)
            return names[i][1];
    return program;
}

/* RFC 5424 §6.2.1, table 2. */
static int
severity(enum log_level level)
{
    switch (level) {
    case LOG_LEVEL_ERROR:
        return 3;
    case LOG_LEVEL_WARNING:
        return 4;
    case LOG_LEVEL_INFO:
        return 6;
    case LOG_LEVEL_DEBUG:
        break;
    }
    return 7;
}

/* The tag names the program only where the text does not. */
static void
write_syslog(struct log_prefix *p, enum log_level level, const char *program,
             int64_t now_ms, char out[LOG_PREFIX_MAX])
{
    char time[LOG_TIME_SIZE];
    log_prefix_local_time(p, now_ms, time);
    bool is_plain = p->style == LOG_STYLE_JSON;
    bool is_postfix = p->style == LOG_STYLE_POSTFIX;
    snprintf(out, LOG_PREFIX_MAX,
             "<%d>%s %s%s%.*s[%ld]: ", FACILITY_MAIL | severity(level), time,
             is_postfix ? "postfix" : "petrel", is_plain ? "" : "/", PROGRAM_MAX,
             is_plain     ? ""
             : is_postfix ? postfix_program(program)
                          : program,
             (long)getpid());
}

/* "TIME PROGRAM: ": each line of a daemon has it. */
static size_t
write_usual(struct log_prefix *p, const char *program, int64_t now_ms,
            char out[LOG_PREFIX_MAX])
{
    if (now_ms != p->usual_ms || p->usual_length == 0) {
        p->usual_length = log_prefix_time(p, now_ms, p->usual);
        p->usual[p->usual_length++] = ' ';
        p->usual_ms = now_ms;
    }
    memcpy(out, p->usual, sizeof(p->usual));
    char *at = out + p->usual_length;
    for (size_t i = 0; i < PROGRAM_MAX && program[i] != '\0'; i++)
        *at++ = program[i];
    memcpy(at, ": ", sizeof(": "));
    return (size_t)(at - out) + strlen(": ");
}

static void
write_other(struct log_prefix *p, const char *priority, const char *time,
            const char *program, char out[LOG_PREFIX_MAX])
{
    const char *space = time[0] != '\0' ? " " : "";
    switch (p->style) {
    case LOG_STYLE_PETREL:
        snprintf(out, LOG_PREFIX_MAX, "%s%s%s%.*s: ", priority, time, space,
                 PROGRAM_MAX, program);
        break;
    case LOG_STYLE_POSTFIX:
        snprintf(out, LOG_PREFIX_MAX, "%s%s%s%s%spostfix/%.*s[%ld]: ", priority, time,
                 space, time[0] != '\0' ? p->host : "",
                 time[0] != '\0' && p->host[0] != '\0' ? " " : "", PROGRAM_MAX,
                 postfix_program(program), (long)getpid());
        break;
    case LOG_STYLE_JSON:
        snprintf(out, LOG_PREFIX_MAX, "%s", priority);
        break;
    }
}

size_t
log_prefix_write(struct log_prefix *p, enum log_level level, const char *program,
                 int64_t now_ms, char out[LOG_PREFIX_MAX])
{
    char time[LOG_TIME_SIZE], priority[8];
    if (p->target == LOG_TO_SYSLOG) {
        write_syslog(p, level, program, now_ms, out);
        return strlen(out);
    }
    if (p->target == LOG_TO_STDERR && p->has_time && p->style == LOG_STYLE_PETREL)
        return write_usual(p, program, now_ms, out);
    time[0] = priority[0] = '\0';
    if (p->target == LOG_TO_JOURNAL)
        snprintf(priority, sizeof(priority), "<%d>", severity(level));
    else if (p->has_time)
        log_prefix_time(p, now_ms, time);
    write_other(p, priority, time, program, out);
    return strlen(out);
}

bool
log_prefix_is_journal(int descriptor)
{
    const char *stream = getenv("JOURNAL_STREAM");
    struct text inode = text_from(stream != NULL ? stream : ""), device;
    uint64_t numbers[2];
    return text_cut(&inode, ':', &device) &&
           text_number(device, UINT64_MAX, &numbers[0]) &&
           text_number(inode, UINT64_MAX, &numbers[1]) &&
           net_outlet_is(descriptor, numbers[0], numbers[1]);
}
