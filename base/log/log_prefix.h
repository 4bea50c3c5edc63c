/* The prefix of a line: the time, the program, the priority. It depends on the style and
 * on the receiver of the lines. */
#ifndef BASE_LOG_LOG_PREFIX_H
#define BASE_LOG_LOG_PREFIX_H

#include "base/log/log.h"

enum {
    LOG_PREFIX_MAX = 160,
    LOG_TIME_SIZE = 40,
    LOG_HOST_SIZE = 64,
    LOG_DATE_SIZE = 32
};

/* JOURNAL: standard error is a stream of systemd's journal, which has the time and takes
 * the priority from "<N>". */
enum log_target { LOG_TO_STDERR, LOG_TO_JOURNAL, LOG_TO_SYSLOG };

struct log_prefix {
    enum log_target target;
    enum log_style style;
    bool has_time; /* a daemon's log; else LOG_TO_STDERR without time */
    char host[LOG_HOST_SIZE];
    int64_t date_s; /* the second of date; -1 = none yet */
    char date[LOG_DATE_SIZE];
    size_t date_length;
    int64_t usual_ms; /* lines of a turn have the same time */
    char usual[LOG_TIME_SIZE];
    size_t usual_length; /* "TIME "; 0: none yet */
    int64_t local_s;     /* the same in local time: a line of JSON to syslog has both */
    char local[LOG_DATE_SIZE];
};

/* Whether descriptor is the one of JOURNAL_STREAM (sd_journal_stream_fd(3)). */
bool log_prefix_is_journal(int descriptor);
/* 2025-01-31T23:59:59.123Z; returns its length. */
size_t log_prefix_time(struct log_prefix *p, int64_t now_ms, char out[LOG_TIME_SIZE]);
/* Begins a line with that level and program, up to its text, which begins with the id.
 * Returns its length. */
size_t log_prefix_write(struct log_prefix *p, enum log_level level, const char *program,
                        int64_t now_ms, char out[LOG_PREFIX_MAX]);

#endif
