/* Keeps lines of the log until their descriptor takes them, and counts those lost.
 *
 * A reader that pauses must not hold up the mail. Lines wait here up to LOG_WRITER_MAX;
 * after the first one that is lost all others are lost, too, until the descriptor has
 * taken the waiting lines. So the report stands exactly where lines are missing. */
#include "base/log/log_writer.h"

#include "base/buffer.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/net/net_outlet.h"
#include "base/pace.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LINES_KEPT = 16 * 1024 }; /* memory that the lines of the next turn have again */

/* `lines` holds whole lines; their first `written` bytes are out. While lost > 0 no
 * line is accepted: log_writer_take_lost() ends this state. */
struct log_writer {
    struct loop *loop;
    struct net_outlet outlet;
    struct net_datagram *datagram; /* instead of the outlet, or NULL */
    struct loop_timer again;       /* runs while its service is slow or gone */
    void (*on_drained)(void *context);
    void *context;
    struct pace pace;
    struct loop_timer rest; /* the end of a period of it, while lines wait for that */
    struct buffer lines;
    size_t written;           /* of lines */
    bool cut;                 /* the last write ended within a line */
    struct loop_watch *watch; /* NULL until it first had to wait */
    void (*on_ready)(void *context, int events);
    bool blocked; /* watched */
    bool gone;    /* the service: connect again */
    uint64_t lost;
    uint64_t taken; /* all that log_writer_take_lost() gave out */
    uint64_t told;  /* lost lines reported by on_drained in lines that still wait */
    int error;      /* why; 0: it was not read */
};

static uint64_t
count_lines(struct text t)
{
    uint64_t count = 0;
    struct text line;
    while (t.length > 0 && text_cut(&t, '\n', &line))
        count++;
    return count;
}

static struct text
unwritten(const struct log_writer *w)
{
    return text_after(buffer_text(&w->lines), w->written);
}

/* The descriptor fails: the lines that wait would be outdated when it works again. */
static void
log_writer_give_up(struct log_writer *w, int error)
{
    w->lost += count_lines(unwritten(w));
    if (w->told > 0) {
        w->lost += w->told - 1; /* without the line of the report itself */
        w->taken -= w->told;
    }
    w->told = 0;
    w->error = error;
    w->cut = w->written > 0 && w->lines.at[w->written - 1] != '\n';
    buffer_clear(&w->lines);
    w->written = 0;
}

/* Or the next line would continue one whose end was lost. */
static bool
end_cut_line(struct log_writer *w)
{
    if (w->cut && net_outlet_write(&w->outlet, TEXT("\n")) == 1)
        w->cut = false;
    return !w->cut;
}

static void log_writer_again(void *context);

/* False: some lines still wait. Not every kernel reports a datagram socket as writable
 * once its peer has read, hence the timer. A line that the service refuses (too long for its
 * buffer) is lost. */
static bool
log_writer_send_some(struct log_writer *w)
{
    while (w->written < w->lines.length) {
        struct text rest = unwritten(w), line;
        (void)text_cut(&rest, '\n', &line);
        int error = net_datagram_send(w->datagram, line);
        bool is_slow = error == -EAGAIN || error == -ENOBUFS;
        if (is_slow || net_datagram_is_gone(error)) {
            w->gone = !is_slow;
            loop_timer_start(w->loop, &w->again,
                             is_slow ? LOG_WRITER_SLOW_MS : LOG_WRITER_CONNECT_MS,
                             log_writer_again, w);
            return false;
        }
        w->lost += error != 0;
        w->error = error != 0 ? -error : w->error;
        w->written += line.length + 1;
    }
    return true;
}

/* The same for a stream. */
static bool
log_writer_write_some(struct log_writer *w)
{
    if (w->datagram != NULL && !log_writer_send_some(w))
        return false;
    while (w->written < w->lines.length) {
        int64_t wrote =
            end_cut_line(w) ? net_outlet_write(&w->outlet, unwritten(w)) : -EAGAIN;
        if (wrote == -EAGAIN || wrote == 0)
            return false;
        if (wrote < 0) {
            log_writer_give_up(w, (int)-wrote);
            return false;
        }
        w->written += (size_t)wrote;
    }
    if (w->lines.capacity > LINES_KEPT)
        buffer_clear(&w->lines);
    w->lines.length = 0;
    w->written = 0;
    w->told = 0;
    return true;
}

/* The loop is level-triggered: watched only while lines wait. */
static void
block(struct log_writer *w, bool blocked)
{
    if (blocked == w->blocked)
        return;
    w->blocked = blocked;
    if (w->watch == NULL)
        w->watch =
            loop_watch_new(w->loop, w->outlet.descriptor, LOOP_WRITE, w->on_ready, w);
    else
        loop_watch_set(w->watch, blocked ? LOOP_WRITE : 0);
}

/* on_drained comes after the lines that were kept, and where the lost ones would be. */
static void
push(struct log_writer *w)
{
    bool drained = log_writer_write_some(w);
    if (w->datagram == NULL)
        block(w, w->lines.length > 0);
    if (drained && w->lost > 0)
        w->on_drained(w->context);
}

static void
log_writer_on_ready(void *context, int events)
{
    (void)events;
    push(context);
}

/* Also when no line waits: push() reports the lost ones. */
void
log_writer_flush(struct log_writer *w)
{
    if (!w->blocked && !heap_has(&w->again.node) &&
        (w->lines.length > 0 || w->lost > 0))
        push(w);
}

void
log_writer_flush_soon(struct log_writer *w)
{
    int64_t now_ms = loop_monotonic_ms(w->loop);
    size_t waiting = log_writer_waiting(w);
    if (w->datagram != NULL || waiting == 0 || pace_passes(&w->pace, now_ms, waiting))
        log_writer_flush(w);
    else if (!heap_has(&w->rest.node)) /* no more than a turn */
        loop_timer_start(w->loop, &w->rest, pace_left_ms(&w->pace, now_ms), NULL, NULL);
}

static void
log_writer_again(void *context)
{
    struct log_writer *w = context;
    if (w->gone)
        (void)!net_datagram_connect(w->datagram);
    push(w);
}

/* Nothing is changed: the crash may be anywhere. */
void
log_writer_rescue(void *writer)
{
    struct log_writer *w = writer;
    struct text rest = unwritten(w), line;
    int64_t wrote = 1;
    while (w->datagram != NULL && text_cut(&rest, '\n', &line) && line.length > 0)
        if (net_datagram_send(w->datagram, line) != 0)
            return;
    for (; rest.length > 0 && wrote > 0; rest = text_after(rest, (size_t)wrote))
        if ((wrote = net_outlet_write(&w->outlet, rest)) < 0)
            return;
}

void
log_writer_use(struct log_writer *w, struct net_datagram *datagram)
{
    assert(w->watch == NULL && w->lines.length == 0);
    w->datagram = datagram;
}

struct log_writer *
log_writer_new(struct loop *loop, int descriptor, void (*on_drained)(void *context),
               void *context)
{
    struct log_writer *w = memory_new(sizeof(*w));
    w->loop = loop;
    w->on_ready = log_writer_on_ready;
    w->on_drained = on_drained;
    w->context = context;
    w->pace = (struct pace){.period_ms = LOG_WRITER_SOON_MS,
                            .immediate = LOG_WRITER_NOW,
                            .most = LOG_WRITER_SOON};
    buffer_init(&w->lines, LOG_WRITER_MAX);
    net_outlet_open(&w->outlet, descriptor);
    return w;
}

/* False: it is pointless. */
static bool
wait_for_space(const struct log_writer *w, int64_t left_us)
{
    int left_ms = (int)((left_us + 999) / 1000);
    if (w->datagram == NULL)
        return net_outlet_wait(&w->outlet, left_ms);
    net_datagram_wait(w->datagram, LOG_WRITER_SLOW_MS);
    return !w->gone;
}

/* At the end of the program: a reader that has stopped delays it by LOG_WRITER_LAST_MS
 * only. */
static void
write_last(struct log_writer *w)
{
    int64_t end_us = loop_clock_us() + LOG_WRITER_LAST_MS * INT64_C(1000);
    int64_t left_us = LOG_WRITER_LAST_MS * INT64_C(1000);
    push(w);
    while (w->lines.length > 0 && left_us > 0 && wait_for_space(w, left_us)) {
        push(w);
        left_us = end_us - loop_clock_us();
    }
}

void
log_writer_free(struct log_writer **writer)
{
    struct log_writer *w = *writer;
    if (w == NULL)
        return;
    write_last(w);
    *writer = NULL;
    loop_watch_free(&w->watch);
    loop_timer_stop(w->loop, &w->again);
    loop_timer_stop(w->loop, &w->rest);
    net_outlet_close(&w->outlet);
    buffer_free(&w->lines);
    free(w);
}

bool
log_writer_add(struct log_writer *w, struct text lines)
{
    if (w->lost == 0 && lines.length > w->lines.limit - w->lines.length) {
        buffer_take(&w->lines, w->written);
        w->written = 0;
    }
    if (w->lost > 0 || !buffer_add(&w->lines, lines)) {
        w->error = w->lost > 0 ? w->error : 0;
        w->lost += count_lines(lines);
        return false;
    }
    return true;
}

size_t
log_writer_waiting(const struct log_writer *w)
{
    return w->lines.length - w->written;
}

uint64_t
log_writer_take_lost(struct log_writer *w, const char **why)
{
    uint64_t lost = w->lost;
    *why = w->error != 0 ? strerror(w->error) : "not read";
    w->told = lost;
    w->taken += lost;
    w->lost = 0;
    w->error = 0;
    return lost;
}

uint64_t
log_writer_lost(const struct log_writer *w)
{
    return w->taken + w->lost;
}
