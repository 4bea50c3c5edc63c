/* Common parts of the tests of registries: a loop with all that a registry needs, and
 * claims that write down their answers. */
#ifndef T_SUPPORT_REGISTRY_KIT_H
#define T_SUPPORT_REGISTRY_KIT_H

#include "base/dns/dns.h"
#include "base/log/log.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/net/net.h"
#include "base/redis/redis_internal.h"
#include "defrag/registry/registry_internal.h"
#include "t/support/folder.h"
#include "t/support/tap.h"

#include <ftw.h>
#include <unistd.h>

enum { PATIENCE_MS = 60000, IMPATIENT_MS = 25 };

struct world {
    struct loop *loop;
    struct log *log;
    struct net *net;
    struct dns *dns;
    struct tls_client *tls;
    struct registry *registry;
    struct buffer said;
    unsigned recovered, emptied;
};

void registry_world_open(struct world *w);

/* For places that call others. */
void world_connect(struct world *w);

/* The breaker of the place that the registry asks. */
struct breaker *breaker_of(struct registry *r);

/* For so long it waits for answers. */
void registry_be_patient(struct registry *r, int64_t ms);

/* NULL: an error, which is in error. */
struct registry * registry_of(struct world *w, const char *host, const char *setting, char error[256]);

void registry_world_start(struct world *w, const char *host, const char *setting);

void registry_world_end(struct world *w);

bool has_said(const struct world *w, const char *words);

int64_t now_of(const struct world *w);

/* Turns until it is true, for so long at most. */
#define until_ms(w, limit_ms, condition)                                               \
    for (int64_t end_ms = now_of(w) + (limit_ms); now_of(w) < end_ms && !(condition);) \
    loop_turn((w)->loop, 5)
#define until(w, condition) until_ms(w, 60000, condition)

struct told {
    struct registry_claim claim;
    int times;
    enum registry_answer answer;
    char host[REGISTRY_HOST_MAX + 1];
};

void on_told(void *context, enum registry_answer answer, const char *host);

void key_from(unsigned number, unsigned char key[REGISTRY_KEY_SIZE]);

void claim_start(struct world *w, struct told *t, unsigned number, int64_t ttl_ms);

const char * told_text(const struct told *t);

/* "own", "unavailable", or the host. */
const char * claim_for(struct world *w, unsigned number, int64_t ttl_ms);

const char * claim(struct world *w, unsigned number);

/* Where an answer must come: a machine that is busy with other things may have made us
 * wait longer than claims do. */
const char * sure_for(struct world *w, unsigned number, int64_t ttl_ms);

const char * sure(struct world *w, unsigned number);

void close_key(struct world *w, unsigned number, int64_t memory_ms);

void pass_ms(struct world *w, int64_t ms);

void remove_tree(const char *directory);

void registry_make_home(char home[64]);

#endif
