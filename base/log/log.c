/* The log: builds a line in the chosen style and writes it with one call.
 *
 * Programs parse the log, and peers choose many of its words. So one event is one line,
 * each byte from outside is escaped here (log_escape()), and a comma that could begin a
 * field is, too (log_value_guard()). Values are cut long before lines are.
 *
 * Lines wait in memory and are written twice in a turn (warnings and errors immediately):
 * before the queue syncs and removes files, and before replies are sent. So nobody sees an
 * effect before its line, but for many lines: those beyond LOG_WRITER_NOW wait up to
 * LOG_WRITER_SOON_MS (base/pace.h). A crash writes the lines that wait. */
#include "base/log/log.h"

#include "base/crash.h"
#include "base/json_write.h"
#include "base/log/log_internal.h"
#include "base/log/log_prefix.h"
#include "base/log/log_value.h"
#include "base/log/log_writer.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/net/net_outlet.h"
#include "base/number.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The length of a field's value after escaping: small compared with the line, so that
 * a name from a peer cannot push the outcome off its end. */
enum { VALUE_MAX = 1024, LINE_USUAL = 1000 };
static_assert((int)LINE_USUAL >= (int)LOG_PREFIX_MAX, "a line begins with its prefix");
/* Bytes of a field beside its value: the key, and ", " "=" "<" ">". */
enum { KEY_MAX = 64, FIELD_MORE = KEY_MAX + 5 };
enum { SECONDS_MAX = 4, /* numbers in a field */ SECONDS_SIZE = 24, ID_SIZE = 64 };
enum {
    JSON_PART = 8
}; /* a value has at most this part of what a line of json has left */
enum { SPARE_MAX = 2048 }; /* of a line; its memory is kept for the next */

struct log {
    struct loop *loop;
    struct log_prefix prefix;
    struct log_mask mask;
    enum log_level max;
    struct buffer *captured;
    struct fields *spare;      /* of an earlier line */
    struct log_writer *writer; /* NULL without a loop */
    struct loop_task wake;     /* posted while lines wait: the turn comes immediately */
    struct net_datagram syslog;
    void (*take)(void *context, struct text line); /* NULL: not log_new_apart()'s */
    void *take_context;
    struct log_counts counts;
};

/* The target of log_line.fields. */
struct fields {
    struct buffer line;
    bool is_json;
    size_t count;
    bool cut;
};

const char *
log_level_name(enum log_level level)
{
    switch (level) {
    case LOG_LEVEL_ERROR:
        return "error";
    case LOG_LEVEL_WARNING:
        return "warning";
    case LOG_LEVEL_INFO:
        return "info";
    case LOG_LEVEL_DEBUG:
        return "debug";
    }
    abort(); /* a level that does not exist */
}

/* Nothing follows the ellipsis of a line that was cut. */
static void
log_add(struct fields *f, struct text t)
{
    if (f->cut || buffer_add(&f->line, t))
        return;
    f->cut = true;
    bool added = buffer_add(&f->line, text_before(t, f->line.limit - f->line.length));
    assert(added);
    log_value_end_cut(&f->line);
}

/* Space for size more bytes; NULL: they do not fit. The memory of an earlier line
 * nearly always has it. */
static inline char *
fields_reserve(struct fields *f, size_t size)
{
    struct buffer *b = &f->line;
    size_t left = b->capacity < b->limit ? b->capacity - b->length : 0;
    if (f->cut)
        return NULL;
    return size <= left ? b->at + b->length : buffer_reserve(b, size);
}

/* The bytes written there are a field of the line. */
static inline void
fields_take(struct fields *f, const char *end)
{
    f->line.length = (size_t)(end - f->line.at);
    f->count++;
}

static void
log_add_id(struct fields *f, const struct log_line *line)
{
    char bare[ID_SIZE];
    const char *id = line->id;
    if (id == NULL)
        return;
    if (line->log->prefix.style == LOG_STYLE_POSTFIX && strlen(id) < sizeof(bare)) {
        log_bare_id(id, bare);
        id = bare;
    }
    size_t length = strlen(id);
    char *at = fields_reserve(f, length + 2);
    if (at == NULL) {
        log_add(f, text_from(id));
        log_add(f, TEXT(": "));
        return;
    }
    memcpy(at, id, length);
    memcpy(at + length, ": ", 2);
    f->line.length += length + 2;
}

static int64_t
log_now_ms(const struct log *log)
{
    return log->loop != NULL ? loop_now_ms(log->loop) : 0;
}

static void
start_text(struct fields *f, const struct log_line *line)
{
    log_add_id(f, line);
    if (line->level <= LOG_LEVEL_WARNING) {
        log_add(f, text_from(log_level_name(line->level)));
        log_add(f, TEXT(": "));
    }
}

/* --- JSON ------------------------------------------------------------------------- */

static struct json_writer
json_begin(struct fields *f, const char *key)
{
    struct json_writer w = {&f->line, false};
    bool is_first = f->line.at[f->line.length - 1] == '{';
    json_put(&w, is_first ? TEXT("\"") : TEXT(",\""));
    json_put(&w, text_from(key));
    json_put(&w, TEXT("\":"));
    return w;
}

/* A member for which there is no space is omitted. */
static void
json_end(struct fields *f, const struct json_writer *w, size_t before)
{
    if (w->full)
        f->line.length = before;
    f->count++;
}

/* Such a line is never cut, or it would not be JSON: its values are, until they are
 * within most bytes, with the key. */
static void
json_text(struct fields *f, const char *key, struct text value, size_t most)
{
    struct buffer *line = &f->line;
    struct json_writer w;
    size_t before = line->length, limit = line->limit, size = value.length;
    line->limit = before + most < limit ? before + most : limit;
    for (;;) {
        w = json_begin(f, key);
        json_put(&w, TEXT("\""));
        json_put_escaped(&w, text_before(value, log_value_whole(value, size)));
        json_put(&w, size < value.length ? TEXT(LOG_ELLIPSIS "\"") : TEXT("\""));
        if (!w.full || size == 0)
            break;
        line->length = before;
        size /= 2;
    }
    line->limit = limit;
    json_end(f, &w, before);
}

static void
json_value(struct fields *f, const char *key, struct text value)
{
    json_text(f, key, value, (f->line.limit - f->line.length) / JSON_PART);
}

static size_t
json_write_seconds(int64_t ms, char out[SECONDS_SIZE])
{
    uint64_t size = ms < 0 ? -(uint64_t)ms : (uint64_t)ms;
    int length = snprintf(out, SECONDS_SIZE, "%s%" PRIu64 ".%03u", ms < 0 ? "-" : "",
                          size / 1000, (unsigned)(size % 1000));
    while (out[length - 1] == '0' && out[length - 2] != '.')
        length--;
    return (size_t)length;
}

/* A number, or an array of them. */
static void
json_seconds(struct fields *f, const char *key, const int64_t *ms, size_t count)
{
    size_t before = f->line.length;
    struct json_writer w = json_begin(f, key);
    char made[SECONDS_SIZE];
    for (size_t i = 0; i < count; i++) {
        if (count > 1)
            json_put(&w, i > 0 ? TEXT(",") : TEXT("["));
        json_put(&w, text_of(made, json_write_seconds(ms[i], made)));
    }
    json_put(&w, count > 1 ? TEXT("]") : TEXT(""));
    json_end(f, &w, before);
}

static void
start_json(struct fields *f, const struct log_line *line)
{
    f->is_json = true;
    f->line.limit--; /* the end has its own place */
    log_add(f, TEXT("{"));
    if (line->log->loop != NULL) {
        char start[LOG_TIME_SIZE];
        log_prefix_time(&line->log->prefix, log_now_ms(line->log), start);
        json_value(f, "time", text_from(start));
    }
    json_value(f, "level", text_from(log_level_name(line->level)));
    json_value(f, "program", text_from(line->program));
    if (line->id != NULL) /* or the name of an invalid file */
        json_value(f, "id",
                   text_is_utf8(text_from(line->id)) ? text_from(line->id) : TEXT("?"));
    f->count = 0;
}

/* --- Text ------------------------------------------------------------------------- */

/* At SYNC, before the queue's own hook, and again at SEND: ANSWER logs, too. */
static void
flush_lines(void *context)
{
    struct log *log = context;
    log_writer_flush_soon(log->writer);
    loop_unpost(log->loop, &log->wake);
}

static void
log_write_line(struct log *log, enum log_level level, struct buffer *line)
{
    line->limit = LOG_LINE_MAX; /* the LF has its own place */
    bool ended = buffer_add_byte(line, '\n');
    assert(ended);
    log->counts.lines[level]++;
    if (log->take != NULL) {
        log->take(log->take_context, buffer_text(line));
    } else if (log->captured != NULL) {
        if (!buffer_add(log->captured, buffer_text(line)))
            fputs("log: the capturing buffer is full\n", stderr);
    } else if (log->loop == NULL) {
        fwrite(line->at, 1, line->length, stderr);
    } else {
        (void)!log_writer_add(log->writer, buffer_text(line));
        if (level <= LOG_LEVEL_WARNING ||
            log_writer_waiting(log->writer) > LOG_WRITER_SOON)
            log_writer_flush(log->writer);
        else
            loop_wake(log->loop, &log->wake);
    }
}

static void
add_key(struct fields *f, const char *key)
{
    if (key == NULL)
        return;
    log_add(f, f->count > 0 ? TEXT(", ") : TEXT(""));
    log_add(f, text_from(key));
    log_add(f, TEXT("="));
}

/* The same as add_key(), where there is space. */
static inline char *
write_key(const struct fields *f, char *at, const char *key)
{
    if (f->count > 0) {
        *at++ = ',';
        *at++ = ' ';
    }
    for (size_t i = 0; i < KEY_MAX && key[i] != '\0'; i++)
        *at++ = key[i];
    *at++ = '=';
    return at;
}

/* The same as add_value(), for nearly every field: its bytes are examined while they are
 * copied. brackets: around the value. False: it has others, or does not fit. */
static bool
add_simple(struct fields *f, const char *key, struct text t, bool brackets)
{
    char *at = fields_reserve(f, t.length + FIELD_MORE);
    if (at == NULL)
        return false;
    at = write_key(f, at, key);
    if (brackets)
        *at++ = '<';
    if (!log_value_copy_simple(t, at))
        return false;
    at += t.length;
    if (brackets)
        *at++ = '>';
    fields_take(f, at);
    return true;
}

static bool
add_plain(struct fields *f, const char *key, struct text t)
{
    char *at = fields_reserve(f, t.length + FIELD_MORE);
    if (at == NULL)
        return false;
    if (key != NULL)
        at = write_key(f, at, key);
    if (!log_value_copy_plain(t, at))
        return false;
    fields_take(f, at + t.length);
    return true;
}

static bool
add_plain_remark(struct fields *f, struct text t)
{
    char *at = fields_reserve(f, t.length + FIELD_MORE);
    if (at == NULL)
        return false;
    if (f->count > 0)
        *at++ = ' ';
    *at++ = '(';
    if (!log_value_copy_plain(t, at))
        return false;
    at += t.length;
    *at++ = ')';
    fields_take(f, at);
    return true;
}

/* Adds one value of any kind; key NULL: the sentence or the remark. */
static void
add_value(struct log_line *line, const char *key, struct text t, enum log_guard guard)
{
    struct fields *f = line->fields;
    struct buffer value;
    if (!f->is_json && guard == LOG_GUARD_NOTHING && t.length <= VALUE_MAX &&
        add_plain(f, key, t))
        return;
    if (key != NULL && !f->is_json)
        log_value_build_field(&value, t, VALUE_MAX, guard);
    else
        log_value_build(&value, t, key == NULL ? LOG_LINE_MAX : VALUE_MAX, guard);
    struct text made = buffer_text(&value);
    if (f->is_json && key == NULL) {
        json_text(f, "text", made, LOG_LINE_MAX);
    } else if (f->is_json) {
        json_value(f, key, made);
    } else {
        add_key(f, key);
        log_add(f, made);
        f->count++;
    }
    buffer_free(&value);
}

/* As printf, cut at a line's length. */
__attribute__((format(printf, 2, 0))) static struct text
format_value(char out[LOG_LINE_MAX + 1], const char *format, va_list list)
{
    int length = vsnprintf(out, LOG_LINE_MAX + 1, format, list);
    assert(length >= 0);
    return text_of(out, length > LOG_LINE_MAX ? LOG_LINE_MAX : (size_t)length);
}

/* Reports lost lines, now that there is space. */
static void
tell_lost(void *context)
{
    struct log *log = context;
    const char *why;
    uint64_t lost = log_writer_take_lost(log->writer, &why);
    log_say(log, LOG_LEVEL_WARNING, "main", NULL, "%" PRIu64 " log lines lost: %s: %s",
            lost, log->prefix.target == LOG_TO_SYSLOG ? "syslog" : "standard error",
            why);
}

struct log *
log_new(struct loop *loop, enum log_style style, enum log_level max)
{
    struct log *log = memory_new(sizeof(*log));
    log->loop = loop;
    log->prefix.date_s = log->prefix.local_s = -1;
    log->prefix.has_time = loop != NULL;
    log->syslog.descriptor = -1;
    if (loop != NULL) {
        log->writer = log_writer_new(loop, STDERR_FILENO, tell_lost, log);
        loop_at_end(loop, LOOP_SYNC_LOG, flush_lines, log);
        loop_at_end(loop, LOOP_SEND_LOG, flush_lines, log);
    }
    log_restyle(log, style, max);
    return log;
}

const struct log_counts *
log_counts(struct log *log)
{
    log->counts.lost = log->writer != NULL ? log_writer_lost(log->writer) : 0;
    return &log->counts;
}

struct log *
log_new_apart(struct loop *loop, void (*take)(void *context, struct text line),
              void *context)
{
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    log->loop = loop;
    log->prefix.has_time = true;
    log->take = take;
    log->take_context = context;
    return log;
}

void
log_free(struct log **log)
{
    struct log *l = *log;
    *log = NULL;
    if (l == NULL)
        return;
    if (l->writer != NULL) {
        crash_uncall(l->writer);
        log_writer_free(&l->writer); /* says what is lost */
        loop_unpost(l->loop, &l->wake);
        loop_at_end_remove(l->loop, LOOP_SYNC_LOG, flush_lines, l);
        loop_at_end_remove(l->loop, LOOP_SEND_LOG, flush_lines, l);
    }
    if (l->spare != NULL) {
        buffer_free(&l->spare->line);
        free(l->spare);
    }
    net_datagram_close(&l->syslog);
    free(l);
}

void
log_write_at_crash(struct log *log)
{
    assert(log->writer != NULL);
    crash_call(log_writer_rescue, log->writer);
}

void
log_watch_journal(struct log *log)
{
    if (log_prefix_is_journal(STDERR_FILENO))
        log->prefix.target = LOG_TO_JOURNAL;
}

int
log_open_syslog(struct log *log, const char *path)
{
    assert(log->writer != NULL);
    int error = net_datagram_open(&log->syslog, path);
    if (error != 0) {
        net_datagram_close(&log->syslog);
        return error;
    }
    log->prefix.target = LOG_TO_SYSLOG;
    log_writer_use(log->writer, &log->syslog);
    return 0;
}

void
log_restyle(struct log *log, enum log_style style, enum log_level max)
{
    log->prefix.style = style;
    log->max = max;
}

void
log_mask_by(struct log *log, enum log_addresses form,
            const unsigned char key[DIGEST_SIZE])
{
    log->mask.form = form;
    log->mask.has_key = key != NULL;
    if (key != NULL)
        memcpy(log->mask.key, key, DIGEST_SIZE);
}

const struct log_mask *
log_mask(const struct log *log)
{
    return &log->mask;
}

void
log_name_host(struct log *log, const char *hostname)
{
    snprintf(log->prefix.host, sizeof(log->prefix.host), "%.*s",
             (int)strcspn(hostname, "."), hostname);
}

void
log_bare_id(const char *id, char *out)
{
    for (; *id != '\0'; id++)
        if (*id != '-')
            *out++ = *id;
    *out = '\0';
}

void
log_capture(struct log *log, struct buffer *buffer)
{
    log->captured = buffer;
}

enum log_level
log_level(const struct log *log)
{
    return log->max;
}

enum log_style
log_style(const struct log *log)
{
    return log->prefix.style;
}

static struct fields *
take_fields(struct log *log)
{
    struct fields *f = log->spare;
    log->spare = NULL;
    if (f == NULL)
        f = memory_new(sizeof(*f));
    f->count = 0;
    f->cut = f->is_json = false;
    f->line.length = 0;
    f->line.limit = LOG_LINE_MAX - 1;
    if (f->line.capacity < LINE_USUAL)
        buffer_reserve(&f->line, LINE_USUAL);
    return f;
}

static void
give_back_fields(struct log *log, struct fields *f)
{
    if (log->spare == NULL && f->line.capacity <= SPARE_MAX) {
        log->spare = f;
        return;
    }
    buffer_free(&f->line);
    free(f);
}

/* A line above the level costs nothing: without fields all later calls return. */
void
log_start(struct log_line *line, struct log *log, enum log_level level,
          const char *program, const char *id)
{
    *line = (struct log_line){log, level, program, id, NULL};
    if (level > log->max)
        return;
    struct fields *f = line->fields = take_fields(log);
    /* take_fields() has made room for it. */
    f->line.length =
        log_prefix_write(&log->prefix, level, program, log_now_ms(log), f->line.at);
    if (log->prefix.style == LOG_STYLE_JSON)
        start_json(f, line);
    else
        start_text(f, line);
}

static void
log_add_field(struct log_line *line, const char *key, struct text value)
{
    struct fields *f = line->fields;
    if (!f->is_json && value.length <= VALUE_MAX && add_simple(f, key, value, false))
        return;
    add_value(line, key, value, log_value_guard(value, line->log->take != NULL));
}

/* All texts of lines but ids and log_field_list() pass here. */
static void
add_masked(struct log_line *line, const char *key, struct text t,
           struct text (*mask)(const struct log_mask *m, struct text t,
                               struct buffer *out),
           void (*add)(struct log_line *line, const char *key, struct text t))
{
    struct buffer masked;
    if (line->fields == NULL)
        return;
    if (line->log->mask.form == LOG_ADDRESSES_FULL) {
        add(line, key, t);
        return;
    }
    add(line, key, mask(&line->log->mask, t, &masked));
    buffer_free(&masked);
}

void
log_field(struct log_line *line, const char *key, struct text value)
{
    assert(key != NULL);
    add_masked(line, key, value, log_mask_text, log_add_field);
}

void
log_field_list(struct log_line *line, const char *key, struct text list)
{
    struct buffer value;
    struct fields *f = line->fields;
    if (f == NULL || !f->is_json) {
        log_field(line, key, list);
        return;
    }
    size_t before = f->line.length;
    struct json_writer w = json_begin(f, key);
    log_value_build(&value, list, VALUE_MAX, LOG_GUARD_NOTHING);
    json_put_list(&w, TEXT(""), buffer_text(&value));
    json_end(f, &w, before);
    buffer_free(&value);
}

void
log_field_format(struct log_line *line, const char *key, const char *format, ...)
{
    if (line->fields == NULL)
        return;
    char made[LOG_LINE_MAX + 1];
    va_list list;
    va_start(list, format);
    log_field(line, key, format_value(made, format, list));
    va_end(list);
}

void
log_field_number(struct log_line *line, const char *key, int64_t value)
{
    struct fields *f = line->fields;
    char made[NUMBER_SIZE];
    if (f == NULL)
        return;
    if (f->is_json) {
        size_t before = f->line.length;
        struct json_writer w = json_begin(f, key);
        json_put_number(&w, TEXT(""), value);
        json_end(f, &w, before);
        return;
    }
    char *at = fields_reserve(f, NUMBER_SIZE + FIELD_MORE);
    if (at != NULL) {
        at = write_key(f, at, key);
        fields_take(f, at + number_write(value, at));
        return;
    }
    add_value(line, key, text_of(made, number_write(value, made)), LOG_GUARD_NOTHING);
}

/* As "%.2f" of ms / 1000, without a NUL and without zeros at its end, as Postfix has it:
 * "0", "1.5". Half a hundredth is rounded up, not as the binary number lies. */
static size_t
write_hundredths(int64_t ms, char out[SECONDS_SIZE])
{
    if (ms < 0) /* a clock that was set back */
        return (size_t)snprintf(out, SECONDS_SIZE, "%.2f", (double)ms / 1000);
    uint64_t hundredths = ((uint64_t)ms + 5) / 10;
    unsigned rest = (unsigned)(hundredths % 100);
    size_t length = number_write((int64_t)(hundredths / 100), out);
    if (rest == 0)
        return length;
    out[length++] = '.';
    out[length++] = (char)('0' + rest / 10);
    if (rest % 10 != 0)
        out[length++] = (char)('0' + rest % 10);
    return length;
}

static size_t
write_seconds(const int64_t *ms, size_t count, char *out)
{
    size_t length = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0)
            out[length++] = '/';
        length += write_hundredths(ms[i], out + length);
    }
    return length;
}

void
log_field_seconds(struct log_line *line, const char *key, const int64_t *ms,
                  size_t count)
{
    struct fields *f = line->fields;
    char made[SECONDS_MAX * SECONDS_SIZE];
    assert(count >= 1 && count <= SECONDS_MAX);
    if (f == NULL)
        return;
    if (f->is_json) {
        json_seconds(f, key, ms, count);
        return;
    }
    char *at = fields_reserve(f, sizeof(made) + FIELD_MORE);
    if (at != NULL) {
        at = write_key(f, at, key);
        fields_take(f, at + write_seconds(ms, count, at));
        return;
    }
    add_value(line, key, text_of(made, write_seconds(ms, count, made)),
              LOG_GUARD_NOTHING);
}

/* Any address, escaped and cut as a value is. */
static void
add_bracketed(struct log_line *line, const char *key, struct text address)
{
    char made[LOG_LINE_MAX + 2];
    size_t length = address.length < LOG_LINE_MAX ? address.length : LOG_LINE_MAX;
    made[0] = '<';
    if (length > 0)
        memcpy(made + 1, address.at, length);
    made[length + 1] = '>';
    log_add_field(line, key, text_of(made, length + 2));
}

static void
add_address(struct log_line *line, const char *key, struct text address)
{
    struct fields *f = line->fields;
    if (f->is_json)
        add_value(line, key, address, LOG_GUARD_NOTHING);
    else if (address.length > VALUE_MAX - 2 || !add_simple(f, key, address, true))
        add_bracketed(line, key, address);
}

void
log_field_address(struct log_line *line, const char *key, struct text address)
{
    add_masked(line, key, address, log_mask_address, add_address);
}

void
log_field_name(struct log_line *line, const char *key, struct text name)
{
    assert(key != NULL);
    add_masked(line, key, name, log_mask_name, log_add_field);
}

void
log_field_client(struct log_line *line, const char *key, struct text client)
{
    struct fields *f = line->fields;
    if (f != NULL && f->is_json && text_starts(client, TEXT("["))) {
        bool is_ipv6 = text_starts(client, TEXT("[IPv6:"));
        client = text_after(client, is_ipv6 ? strlen("[IPv6:") : 1);
        client = text_before(client, client.length - 1);
    }
    log_field(line, key, client);
}

static void
add_sentence(struct log_line *line, const char *key, struct text sentence)
{
    add_value(line, key, sentence, LOG_GUARD_NOTHING);
}

void
log_sentence(struct log_line *line, const char *format, ...)
{
    if (line->fields == NULL)
        return;
    char made[LOG_LINE_MAX + 1];
    va_list list;
    va_start(list, format);
    add_masked(line, NULL, format_value(made, format, list), log_mask_text,
               add_sentence);
    va_end(list);
}

static void
add_remark(struct log_line *line, const char *key, struct text value)
{
    struct fields *f = line->fields;
    enum log_guard guard = log_value_guard_remark(value);
    if (!f->is_json && guard == LOG_GUARD_NOTHING && add_plain_remark(f, value))
        return;
    if (!f->is_json)
        log_add(f, f->count > 0 ? TEXT(" (") : TEXT("("));
    add_value(line, key, value, guard);
    if (!f->is_json)
        log_add(f, TEXT(")"));
}

void
log_remark(struct log_line *line, struct text value)
{
    add_masked(line, NULL, value, log_mask_text, add_remark);
}

void
log_end(struct log_line *line)
{
    struct fields *f = line->fields;
    if (f == NULL)
        return;
    if (f->is_json) {
        f->line.limit++;
        log_add(f, TEXT("}"));
    }
    log_write_line(line->log, line->level, &f->line);
    give_back_fields(line->log, f);
    line->fields = NULL;
}

static void
add_saying(struct log_line *line, const char *key, struct text sentence)
{
    add_value(line, key, sentence, log_value_guard_sentence(sentence));
}

void
log_say(struct log *log, enum log_level level, const char *program, const char *id,
        const char *format, ...)
{
    if (level > log->max)
        return;
    struct log_line line;
    char made[LOG_LINE_MAX + 1];
    va_list list;
    va_start(list, format);
    struct text sentence = format_value(made, format, list);
    va_end(list);
    log_start(&line, log, level, program, id);
    add_masked(&line, NULL, sentence, log_mask_text, add_saying);
    log_end(&line);
}
