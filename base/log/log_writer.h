/* A bounded buffer of lines for a descriptor that may be slow or unread: the loop never
 * waits for it.
 *
 * Lines that the descriptor does not take immediately wait here, and the writer watches
 * the descriptor. Once the buffer is full, new lines are lost until it is empty again:
 * then on_drained is called, and its owner reports the number. No line is written in
 * part, unless the descriptor fails. */
#ifndef BASE_LOG_LOG_WRITER_H
#define BASE_LOG_LOG_WRITER_H

#include "base/text.h"

struct loop;
struct log_writer;

enum {
    LOG_WRITER_MAX = 1024 * 1024, /* bytes: some thousands of lines */
    LOG_WRITER_SOON = 64 * 1024,  /* fewer wait for more, */
    LOG_WRITER_SOON_MS = 20,      /* at most this, */
    LOG_WRITER_NOW = 8 * 1024,    /* behind this in that time */
    LOG_WRITER_LAST_MS = 2000,    /* to write the rest at the end */
    LOG_WRITER_CONNECT_MS = 1000, /* to a service of datagrams that is gone */
    LOG_WRITER_SLOW_MS = 10       /* until one that is slow is tried again */
};

/* The caller keeps the descriptor; others may share it (base/net/net_outlet.h).
 * on_drained may add lines. Free the writer before the loop; this writes the lines
 * left, for LOG_WRITER_LAST_MS at most. */
struct log_writer *log_writer_new(struct loop *loop, int descriptor,
                                  void (*on_drained)(void *context), void *context);
void log_writer_free(struct log_writer **writer);
/* From now on each line, without its LF, is a datagram of that socket, which the caller
 * keeps open. While nobody listens, the writer connects again every
 * LOG_WRITER_CONNECT_MS. Call it before the first line. */
struct net_datagram;
void log_writer_use(struct log_writer *w, struct net_datagram *datagram);

/* Adds complete lines, with their LF; nothing is written yet. False: they are lost and
 * counted. */
bool log_writer_add(struct log_writer *w, struct text lines)
    __attribute__((warn_unused_result));
/* Writes as much as the descriptor takes; the rest is written from the loop. */
void log_writer_flush(struct log_writer *w);
/* Writes few lines; many wait for more of them (base/pace.h). Datagrams never wait: each is
 * a call of its own. */
void log_writer_flush_soon(struct log_writer *w);
/* At a crash (base/crash.h): writes the bytes that are taken immediately. */
void log_writer_rescue(void *writer);
/* Bytes that wait. */
size_t log_writer_waiting(const struct log_writer *w);

/* The number of lines lost since the last call, and why ("not read", "No space left on
 * device"). From now on lines are accepted again. */
uint64_t log_writer_take_lost(struct log_writer *w, const char **why);
/* All that were ever lost. */
uint64_t log_writer_lost(const struct log_writer *w);

#endif
