/* The log: one event per line on stderr, ids first, bytes of peers escaped here alone.
 *
 * Styles (petrel.conf(5)):
 *
 *     petrel   TIME program: ID: key=value, key=value (text)
 *     postfix  the same fields behind TIME HOST postfix/PROGRAM[pid]: and ids without
 *              their hyphen; base/event/ has the lines about mail and clients
 *     json     one object
 *
 * Printable ASCII and well-formed UTF-8 without C1, U+2028/9 and bidi controls pass;
 * any other byte becomes \xNN. Warnings and errors are marked behind the ID. A field is
 * cut at 1024 bytes and a line at LOG_LINE_MAX, marked by "..."; in json a field is cut at
 * an eighth of what is left of the line, which is whole. The comma of a ", "
 * that could forge a field becomes \x2c; within <...>, in a remark without "), ", and in
 * a sentence without ", name=", it stays. A '<' at the start of a value that is not
 * closed becomes \x3c. Secrets are never passed to these functions. */
#ifndef BASE_LOG_LOG_H
#define BASE_LOG_LOG_H

#include "base/buffer.h"
#include "base/log/log_mask.h"

struct loop;
struct log;

enum log_style { LOG_STYLE_PETREL, LOG_STYLE_POSTFIX, LOG_STYLE_JSON };
enum log_level { LOG_LEVEL_ERROR, LOG_LEVEL_WARNING, LOG_LEVEL_INFO, LOG_LEVEL_DEBUG };
enum { LOG_LINE_MAX = 8192 };

/* loop gives the time; NULL (command line): lines without time. Lines go to descriptor
 * 2. With a loop they wait for the next end-of-turn stage SYNC or SEND; an error or a
 * warning is written immediately, behind the lines that wait. Make the log before queue
 * and net, whose hooks then run later: no file is removed and no reply is sent before
 * its line is written, unless there are many (base/pace.h). If the descriptor is not
 * read, the daemon does not wait: lines are buffered up to LOG_WRITER_MAX, then lost, and
 * a later line reports their number. Levels above max are not written. Free the log
 * before its loop. */
struct log *log_new(struct loop *loop, enum log_style style, enum log_level max);
void log_free(struct log **log);
/* A log of style petrel and of all levels. Its lines go to take(), each with its LF,
 * instead of descriptor 2: for lines that programs read back. Within values " (" is
 * escaped, too: the first one begins the remark. */
struct log *log_new_apart(struct loop *loop,
                          void (*take)(void *context, struct text line), void *context);
/* Lines go to the syslog service whose socket is path (a datagram each, RFC 3164, of
 * facility mail). 0; or -errno, and they go to standard error as before. Call it before
 * the sandbox is entered. A service that is away for some time gets the lines that wait
 * when it is back. */
int log_open_syslog(struct log *log, const char *path)
    __attribute__((warn_unused_result));
/* A crash of the process writes the lines that wait (base/crash.h). */
void log_write_at_crash(struct log *log);
/* If standard error is a stream of systemd's journal: no time, and each line begins with
 * its priority. */
void log_watch_journal(struct log *log);
void log_restyle(struct log *log, enum log_style style, enum log_level max);
enum log_level log_level(const struct log *log);
/* "error", ... */
const char *log_level_name(enum log_level level);

/* Lines by level since startup, written or not, and those of them that were lost. */
struct log_counts {
    uint64_t lines[LOG_LEVEL_DEBUG + 1], lost;
};
const struct log_counts *log_counts(struct log *log);

enum log_style log_style(const struct log *log);
/* Addresses in all texts of lines from now on; key: NULL for none. Lines of
 * log_new_apart() are full unless this is called. */
void log_mask_by(struct log *log, enum log_addresses form,
                 const unsigned char key[DIGEST_SIZE]);
const struct log_mask *log_mask(const struct log *log);
/* The host of style postfix is the first label of hostname. */
void log_name_host(struct log *log, const char *hostname);
/* An id as the tools that read Postfix's log take it: without its hyphen. out has at
 * least the length of id. */
void log_bare_id(const char *id, char *out);

/* A sentence without fields: words of a peer in it forge none. id may be NULL. program,
 * the part of Petrel that logs: smtpd, smtp, lmtp, local, queue, sched, control, dns,
 * oauth, http, main. */
void log_say(struct log *log, enum log_level level, const char *program, const char *id,
             const char *format, ...) __attribute__((format(printf, 5, 6)));

/* A line of fields, built in the caller's frame. */
struct log_line {
    struct log *log;
    enum log_level level;
    const char *program, *id;
    void *fields; /* private to log.c */
};
void log_start(struct log_line *line, struct log *log, enum log_level level,
               const char *program, const char *id);
void log_field(struct log_line *line, const char *key, struct text value);
/* Items with commas between them, none empty; in json an array of strings. */
void log_field_list(struct log_line *line, const char *key, struct text list);
void log_field_format(struct log_line *line, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void log_field_number(struct log_line *line, const char *key, int64_t value);
/* Numbers in ms: "0.02", "0.00/0.00/0.01/0.01"; in json a number of seconds, or an array
 * of such. */
void log_field_seconds(struct log_line *line, const char *key, const int64_t *ms,
                       size_t count);
/* "<a@example.org>"; in json without the brackets. */
void log_field_address(struct log_line *line, const char *key, struct text address);
/* The name of a login. */
void log_field_name(struct log_line *line, const char *key, struct text name);
/* "[192.0.2.1]", "[IPv6:2001:db8::1]", "unix"; in json the address alone. */
void log_field_client(struct log_line *line, const char *key, struct text client);
/* The line's sentence, in place of fields; key "text" in json. It may have fields of its
 * own (", name="), so words of a peer stand in it only where they can forge none. */
void log_sentence(struct log_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The closing remark: " (value)" in petrel and postfix style, key "text" in json. */
void log_remark(struct log_line *line, struct text value);
void log_end(struct log_line *line);

/* The escaper itself, for replies, headers and terminals. False at out's limit: out
 * then ends with the last character that fits. */
bool log_escape(struct text t, struct buffer *out) __attribute__((warn_unused_result));

#endif
