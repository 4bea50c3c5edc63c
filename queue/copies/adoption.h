/* Copies of hosts that are lost, and our own after an absence (doc/cluster.md).
 *
 * Each run says every ADOPTION_BEAT_MS that it lives. Copies whose owner has fallen silent may
 * be claimed: by a script that moves the lease only while the owner's last sign is the one that
 * we have seen, so no clock is compared. From then on the old owner is refused by every script.
 * A message is taken a piece at a time by the path of the peer door (take_adopt()), is durable
 * here with a copy of its own, and only then leaves the copies of the lost host; it is
 * delivered after that. It stays known where it went, for a host that comes back.
 *
 * Our own copies are ours when the engine has said so. Until then no mail comes in, and no
 * delivery begins, for a while. They are taken back from a host that adopts them, also while it
 * does: it has what it has taken by then, and no more. What others have adopted ends here; what
 * is there and not here has ended, or our disk has forgotten it; what is here and not there is
 * stored again (comparison.c). */
#ifndef QUEUE_COPIES_ADOPTION_H
#define QUEUE_COPIES_ADOPTION_H

#include "queue/copies/copies_engine.h"
#include "queue/copies/copies_keeper.h"
#include "queue/copies/copies_keys.h"

struct adoption;
struct event_hub;
struct log;
struct loop;
struct manager;
struct take;

enum {
    ADOPTION_BEAT_MS = 1000,
    ADOPTION_SILENT_MS = 4000,   /* no sign: for copies of our own name, or by order */
    ADOPTION_PATIENCE_MS = 5000, /* for the engine, before mail goes out without it */
    ADOPTION_DOUBT_MS = 15000,   /* for the engine, once we were perhaps cut off */
    ADOPTION_STUCK_MS = 60000,   /* we can take no message: others may */
    ADOPTION_OWNERS_MAX = 1024,  /* others are not seen */
    ADOPTION_SLOTS = 8,          /* messages that are being taken */
    ADOPTION_PIECE = 64 * 1024,  /* below REDIS_REPLY_MAX */
    ADOPTION_KNOWN_S = 30 * 86400, /* for which it is known where adopted mail is */
    ADOPTION_RUN_DIGITS = 16,
    ADOPTION_WHO_MAX = GROUP_HOST_MAX + 1 + ADOPTION_RUN_DIGITS,
    ADOPTION_WHY_MAX = GROUP_HOST_MAX + 160
};

/* "HOST RUN": who we are, for all scripts. */
void adoption_write_who(const char *host, uint64_t run, char out[ADOPTION_WHO_MAX + 1]);

struct adoption_setup {
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    struct manager *manager;
    struct take *take;
    struct copies_engine *engine;
    struct copies_keeper *keeper; /* of our copies */
    const struct copies_settings *settings;
    const char *identity, *who; /* of the spool; ours */
    /* Whether the group hears the host, however silent it is to the engine. */
    bool (*is_heard)(void *context, const char *host);
    /* Why no mail is taken now; NULL: it is. */
    const char *(*closed)(void *context);
    void *context;
};

/* The data that setup points to outlive it. Nothing is delivered until it knows that our
 * copies are ours. Before the keeper joins the engine. */
struct adoption *adoption_new(const struct adoption_setup *setup);
/* Says goodbye. */
void adoption_free(struct adoption **adoption);
void adoption_reload(struct adoption *adoption, int64_t adopt_after_ms);
/* The engine says that our copies have another owner: its host. */
void adoption_fenced(struct adoption *adoption, const char *owner);
/* An operator says that the host will not come back: its copies are taken when it has been
 * silent for ADOPTION_SILENT_MS. False, and why: it has none, or lives. */
bool adoption_order(struct adoption *adoption, struct text host,
                    char why[ADOPTION_WHY_MAX]);

struct adoption_state {
    bool is_ours;     /* our copies are */
    const char *why;  /* they are not; "" */
    const char *host; /* whose mail is adopted now; "" */
    bool is_comparing;
    /* Since startup: from other hosts; from our own copies, as our disk had forgotten them; by
     * others, so that they ended here; copies that cannot be read, and stay. */
    uint64_t adopted, recalled, given_up, unreadable;
    const char *unreadable_at; /* the last of these: "field ID of KEY" */
    bool has_namesake;         /* another host has our name, or a clone of our spool */
};
struct adoption_state adoption_state(const struct adoption *adoption);

#endif
