/* Three hosts with mail that have their copies in one simulated engine, for tests of adoption. The keepers note what they
 * are told. */
#ifndef T_SUPPORT_ADOPTION_KIT_H
#define T_SUPPORT_ADOPTION_KIT_H

#include "queue/copies/adoption.h"
#include "t/sim/copies_engine.h"
#include "t/support/give_kit.h"
#include "t/support/manager_world.h"

#define ADOPTION_ROUTE "* smtp://smtp.b.test"

enum { SITES = 3, IDS_MAX = 64 };

struct ids {
    struct id all[IDS_MAX];
    size_t count;
};

/* A host. */
struct site {
    struct group *g;
    struct world w;
    struct kit_host host;
    struct copies_settings settings;
    struct copies_engine *engine;
    struct adoption *adoption;
    char identity[40], who[ADOPTION_WHO_MAX + 1];
    const char *heard; /* a host that the group hears */
    uint64_t run;
    uint64_t durable, losses; /* of the keeper */
    unsigned opened, closed;  /* it was */
    bool is_closed, is_behind;
    uint64_t number;          /* with */
    char why[ADOPTION_WHY_MAX];
    struct ids removed;
    struct id ends; /* the keeper knows that it does */
};

struct group {
    struct copies_database *database;
    struct site sites[SITES];
};

void ids_add(struct ids *ids, struct id id);
void site_start(struct site *s);
/* Without a goodbye, unless it is good. */
void site_stop(struct site *s, bool is_good);
void site_restart(struct site *s, bool is_good);
void group_begin(struct group *g);
void group_end(struct group *g);
/* All that are up live for that time. */
void group_pass(struct group *g, int64_t ms);
void group_up(struct group *g, unsigned count);
void key_of(const struct site *s, const char *suffix, char out[COPIES_KEY_MAX + 1]);
/* A copy of a message of that host, as the keeper makes it, with that number. */
void site_copy(struct site *s, struct id id, unsigned batch);
/* Any bytes as such a copy, or its end, by whoever owns them. */
void site_copy_bytes(struct site *s, const char *who, const char *batch, struct id id, const char *form);
/* A message that waits there, with a copy. */
struct id site_send(struct site *s, unsigned batch);
void site_go(struct site *s);
/* The first host is lost, and the second one is ordered to adopt its mail. */
void group_order(struct group *g);
/* The first host sends 30 messages and is lost; by order the second one adopts them, until so many
 * copies are left. */
void group_adopt_some(struct group *g, size_t left);

#endif
