/* Two hosts of a group in one process, without a network: what one gives, the other takes
 * through the same functions as the peer door, in pieces. */
#ifndef T_SUPPORT_GIVE_KIT_H
#define T_SUPPORT_GIVE_KIT_H

#include "queue/group/give.h"
#include "queue/group/take.h"

enum { GIVE_KIT_HOSTS = 4 };

/* The fate of a message on the way. */
enum kit_weather {
    KIT_FAIR,
    KIT_SILENT,   /* the answer is lost: it may be there */
    KIT_CUT,      /* the connection breaks before its last byte */
    KIT_CLOSED,   /* 4yz */
    KIT_REFUSING, /* 5yz */
    KIT_OLDER,    /* 5.5.4: it cannot read the form */
    KIT_STUCK     /* no answer yet */
};

struct kit_gift;
struct kit_host {
    const char *name, *state;
    bool is_lost;
    struct loop *loop; /* of the host; NULL: nobody is there */
    struct manager *manager;
    struct take *take;
    struct sibling_service service;
    enum kit_weather weather;
    size_t most;        /* without an answer */
    const char *closed; /* why it takes no mail now; NULL: it does */
    int64_t bytes_max;  /* larger content waits; 0: no limit */
    unsigned asked, taken;
};

/* As one host sees the others. */
struct kit_wire {
    const char *own; /* its name */
    struct loop *loop;
    struct kit_host hosts[GIVE_KIT_HOSTS];
    size_t host_count;
    struct kit_gift *gifts;
    struct sibling_calls calls;
    size_t sent_most; /* messages without an answer, at any time */
    /* Before anything is asked of a host; NULL: of our own. May be NULL. */
    void (*enter)(void *context, const struct kit_host *host);
    void *context;
};

void kit_wire_begin(struct kit_wire *wire, const char *own, struct loop *loop);
void kit_wire_end(struct kit_wire *wire);
struct kit_host *kit_wire_add(struct kit_wire *wire, const char *name);
/* The host takes mail from now on; kit_host_stop() before its manager goes. */
void kit_host_start(struct kit_host *host, struct loop *loop, struct event_hub *events,
                    struct manager *manager);
void kit_host_stop(struct kit_host *host);
/* Hands over what was sent, and answers what is known. Between turns. True: something was
 * done. */
bool kit_wire_carry(struct kit_wire *wire);
/* For give_setup. */
void kit_wire_siblings(void *context,
                       bool (*each)(void *context, const struct sibling *s),
                       void *each_context);
/* Bytes of a form and a content come to the host, as from the name `from`. The refusal, or
 * code 0: it is read. taken: as in the service. */
struct outcome kit_offer(struct kit_host *host, const char *from,
                         const struct sibling_message *message, struct text sections,
                         struct text content, sibling_taken *taken, void *context);

#endif
