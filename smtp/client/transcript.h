/* The transcript of a conversation, for people: commands and replies, each line with the
 * time since the conversation began. It has no content, and only the verb and codes of a
 * login (client.c). Pure.
 *
 * It has TRANSCRIPT_MAX bytes; the last lines of a longer one are kept. */
#ifndef SMTP_CLIENT_TRANSCRIPT_H
#define SMTP_CLIENT_TRANSCRIPT_H

#include "base/text.h"

enum { TRANSCRIPT_MAX = 2048, TRANSCRIPT_LINE_MAX = 300 /* of a line; more is cut */ };

enum transcript_who {
    TRANSCRIPT_WE,
    TRANSCRIPT_THEY,
    TRANSCRIPT_NOTE /* an event, not a line of the dialog */
};

struct transcript {
    int64_t begun_ms, now_ms; /* monotonic; the owner sets now_ms */
    bool failed;              /* something was refused, or the conversation broke off */
    bool is_cut;              /* lines were dropped */
    size_t length;
    char bytes[TRANSCRIPT_MAX]; /* private to transcript.c */
};

struct transcript_line {
    int64_t at_ms; /* since the beginning */
    enum transcript_who who;
    struct text text; /* bytes of peers, unescaped */
};

/* transcript may be NULL: nobody wants it. */
void transcript_add(struct transcript *transcript, enum transcript_who who,
                    struct text line);
/* The lines one by one: *at starts at 0. False at the end. */
bool transcript_next(const struct transcript *transcript, size_t *at,
                     struct transcript_line *line);

#endif
