/* Asks the hosts of the group, this one included, and holds their answers until they are
 * taken: the part of `--cluster` that knows no commands.
 *
 * A question is one line of the control protocol, an answer several: first those with
 * content, at last one with `ok`. Signs of life ("seen") are swallowed. A host that says
 * nothing for FAN_OUT_SILENCE_MS, sends anything but an answer, or more than can be held
 * is given up; its trouble is a sentence. Nothing is parsed before it is taken. */
#ifndef ADMIN_CONTROL_FAN_OUT_H
#define ADMIN_CONTROL_FAN_OUT_H

#include "admin/control/control_session.h"
#include "queue/group/siblings.h"

enum {
    FAN_OUT_SILENCE_MS = 2000,
    FAN_OUT_HELD_MAX = 32 * 1024 * 1024, /* bytes of all hosts' lines */
    FAN_OUT_OWN_HELD = 256 * 1024,       /* of our own, which wait for us */
    FAN_OUT_TROUBLE_MAX = 200
};

/* The hosts to ask. */
struct cluster_hosts {
    const struct sibling_calls *calls; /* NULL: nobody can be asked: */
    const char *why;                   /* a sentence */
    const char *host;                  /* ours */
    /* The siblings that are known now; each: until it returns false. */
    void (*siblings)(void *context,
                     bool (*each)(void *context, const struct sibling *sibling),
                     void *each_context);
    void *context;
};

struct fan_out;

/* The hosts of that time, ours first; none is asked yet. wake is called when something can
 * be taken, in a turn of its own. */
struct fan_out *fan_out_new(struct control_service *service,
                            const struct cluster_hosts *hosts,
                            void (*wake)(void *context), void *context);
void fan_out_free(struct fan_out **fan_out);

size_t fan_out_count(const struct fan_out *fan_out);
const char *fan_out_name(const struct fan_out *fan_out, size_t host);
/* The host of that name; fan_out_count(): there is none. */
size_t fan_out_find(const struct fan_out *fan_out, const char *name);
/* The request is a question to one host that has none. Its whole answer takes at most
 * most_ms. */
void fan_out_ask(struct fan_out *fan_out, size_t host, const json_t *request,
                 int64_t most_ms);

enum fan_out_state {
    FAN_OUT_WAITS, /* for the host */
    FAN_OUT_LINE,  /* *line is the caller's; else it stays as it was */
    FAN_OUT_OVER   /* it has answered, or there is trouble, or it was not asked */
};
enum fan_out_state fan_out_take(struct fan_out *fan_out, size_t host, json_t **line);
/* Its answer makes no sense to the caller: that is its trouble, and nothing more of it is
 * taken. */
void fan_out_distrust(struct fan_out *fan_out, size_t host);
/* Once it is over: the line with `ok`, borrowed; NULL: trouble. */
const json_t *fan_out_last(const struct fan_out *fan_out, size_t host);
/* "": there is none. */
const char *fan_out_trouble(const struct fan_out *fan_out, size_t host);
/* Messages looked at, as the signs of life of all hosts have it. */
uint64_t fan_out_seen(const struct fan_out *fan_out);

#endif
