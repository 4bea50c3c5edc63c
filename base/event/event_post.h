/* Hands kept events over: to a URL, one POST at a time, or to a file (doc/events.md).
 *
 * A batch keeps its extent and its id until it is taken: by status 2xx, or when it is in
 * the file, durably. Else it is offered again, after 5 s, doubled to 15 min, or when the
 * receiver's Retry-After says so; 410 stops everything until a reload. No answer makes an
 * event vanish. Requests are signed as Standard Webhooks 1.0 says. */
#ifndef BASE_EVENT_EVENT_POST_H
#define BASE_EVENT_EVENT_POST_H

#include "base/http/http_call.h"
#include "base/event/event_spool.h"

enum {
    EVENT_AGAIN_MIN_MS = 5 * 1000,
    EVENT_AGAIN_MAX_MS = 15 * 60 * 1000,
    EVENT_RETRY_AFTER_MAX_MS = 60 * 60 * 1000,
    EVENT_POST_MS = 30 * 1000,
    EVENT_WHY_MAX = 400
};

/* Where the events go: "https://HOST/PATH", "http://HOST/PATH" with a HOST that is
 * loopback, private, or one label, "file:/PATH". NULL, or in a sentence why not. */
const char *event_post_check_url(struct text url);
/* For loopback a missing secret needs no warning. */
bool event_post_is_local(struct text url);

struct event_post_settings {
    struct text url;
    struct text secrets; /* separated by white space or commas; all of them sign */
    unsigned batch;      /* events */
    int64_t linger_ms;
};
struct event_post_setup {
    struct loop *loop;
    struct log *log;
    struct event_spool *spool;
    struct http_caller *http;
    struct disk *disk; /* for file: */
};

struct event_post;
/* Settings that event_post_check_url() and webhook_is_secret() take; copied. */
struct event_post *event_post_new(const struct event_post_setup *setup,
                                  const struct event_post_settings *settings);
void event_post_free(struct event_post **post);
/* A reload: the next try is now, also after a 410, and a file is opened anew. */
void event_post_use(struct event_post *post,
                    const struct event_post_settings *settings);

enum event_post_state {
    EVENT_POST_IDLE,
    EVENT_POST_BUSY,
    EVENT_POST_WAITS,  /* to try again: why, next_ms */
    EVENT_POST_STOPPED /* by 410: why */
};
struct event_post_view {
    enum event_post_state state;
    uint64_t batches, failures; /* taken, and tries that failed, since startup */
    unsigned in_a_row;
    int64_t failing_ms; /* nothing has been taken for this time; 0: the last try was */
    int64_t next_ms;    /* wall clock; 0: none is planned */
    char why[EVENT_WHY_MAX]; /* the last failure, printable; "" after a success */
};
struct event_post_view event_post_look(const struct event_post *post);
/* "idle", "posting", "waiting", "stopped". */
const char *event_post_word(enum event_post_state state);

#endif
