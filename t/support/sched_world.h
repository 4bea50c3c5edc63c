/* A world for the scheduler: messages on a pretended disk, channels that do what a test
 * says, virtual time. It checks the contract of sched.h at every action and aborts when
 * it is broken. */
#ifndef T_SUPPORT_SCHED_WORLD_H
#define T_SUPPORT_SCHED_WORLD_H

#include "base/memory.h"
#include "sched/sched.h"

#include "t/support/tap.h"

enum { WORLD_RECIPIENTS = 8, WORLD_DOMAIN = 24 };

enum fate { FATE_OPEN, FATE_SENT, FATE_FAILED, FATE_EXPIRED };

struct mail {
    struct id id;
    int64_t birth, due;
    uint64_t sender, size;
    enum sched_class class;
    bool null_sender, loaded, gone;
    unsigned attempts, rounds, count;
    unsigned finals, deferrals; /* verdicts seen */
    struct {
        enum fate fate;
        char domain[WORLD_DOMAIN];
        struct outcome *last;
    } to[WORLD_RECIPIENTS];
};

struct channel {
    struct channel *next;
    struct sched_session *session;
    const char *domain;
    int64_t opened;
    bool busy, ended, idle, greeted, has_second, found;
    uint64_t proof; /* for which demand */
    const struct target *target;
    struct sched_work work, second; /* second: taken behind it, if has_second */
};

struct world {
    struct sched *s;
    int64_t now;
    struct target target;
    struct mail *mails;
    unsigned count, capacity;
    struct channel *channels; /* in the order they were opened */
    unsigned opens, loads, backlogged, waits, finishes, settles;
    int open_now, active, active_max;
    unsigned loaded[64]; /* the last loads, a ring */
    bool may_be_early; /* mail that waits for a dead site comes when that lives */
};

void world_must(bool good, const char *what);

void sched_world_start(struct world *w, int active_limit, int session_limit);

void sched_world_end(struct world *w);

/* domains: one for each recipient, blanks between. Returns the number of the mail. */
unsigned world_add(struct world *w, const char *domains, int64_t delay_ms, unsigned attempts);

void world_verdict(struct mail *m, unsigned index, const struct outcome *o, bool expired);

void world_load(struct world *w, struct id id);

void sched_world_open(struct world *w, const struct sched_action *a);

void world_act(struct world *w, const struct sched_action *a);

/* The owner's calls after every event. */
void world_run(struct world *w);

/* Lets time pass, with a turn at every wake-up. */
void world_pass(struct world *w, int64_t ms);

/* The open channels to domain, counted from 0; NULL beyond the last. "" = any. */
struct channel * world_channel(struct world *w, const char *domain, int nth);

int world_channels(struct world *w, const char *domain);

bool channel_take(struct world *w, struct channel *c);

struct mail * channel_mail(struct world *w, const struct channel *c);

/* One verdict for recipient number nth of the work. */
void channel_settle(struct world *w, struct channel *c, size_t nth, const struct outcome *o);

void channel_answer(struct world *w, struct channel *c, enum verdict verdict, enum blame blame);

void channel_send(struct world *w, struct channel *c);

void channel_end(struct world *w, struct channel *c, const struct outcome *trouble);

struct outcome world_trouble(enum verdict verdict, const char *text);

void channel_refuse(struct world *w, struct channel *c);

/* Sends all that a channel is given, then ends it. Returns the transactions. */
int channel_drain(struct world *w, struct channel *c);

struct world_site_query {
    const char *key;
    struct sched_site site;
    char text[OUTCOME_TEXT_MAX];
};

/* key NULL in the answer: there is no such destination. */
struct world_site_query world_site(struct world *w, const char *key);

/* With all that the scheduler learns, and a share of the active limit for a site. */
void sched_world_learns(struct world *w, int active_limit, int share);

void world_add_many(struct world *w, const char *domains, int count);

/* Its servers are known. */
bool channel_found(struct world *w, struct channel *c, const char *key);

/* The only site, or the last one. */
struct sched_site world_last_site(struct world *w);

#endif
