/* Sessions: their mail, and when they may take more. Internal to sched/. */
#ifndef SCHED_SESSION_H
#define SCHED_SESSION_H

#include "sched/site.h"

enum { WORKS_MAX = 2 };

/* The work of a session in one transaction. */
struct work {
    struct sched_message *message;
    unsigned first, count, unsettled,
        hint;              /* slots; hint: expected to be settled next */
    unsigned sent;         /* recipients */
    struct hop_quota *hop; /* where they count */
    enum session_feedback feedback;
    struct reason *blamed; /* for BAD; a slot of the message holds it */
    int64_t taken_ms;
    unsigned *indexes;
    size_t capacity;
};

struct sched_session {
    struct sched_session *prev, *next;                 /* all */
    struct sched_session *opening_prev, *opening_next; /* of its site */
    struct sched_session *idlers_prev, *idlers_next;   /* the same */
    struct sched_session *rest_prev, *rest_next;       /* idle ones of all sites */
    struct site *site;
    struct destination *destination; /* for which it was opened */
    char *domain;
    int64_t opened_ms;
    struct lane *lane;  /* that of its proof, once it is greeted */
    uint64_t demand;    /* found for its domain */
    bool is_found;      /* its servers are known */
    bool greeted, idle; /* idle: found no mail to carry */
    bool released;      /* it ends, to make space for other mail */
    bool plain_turn;    /* its next work is of the plain lane */
    struct work works[WORKS_MAX];
    unsigned oldest, work_count; /* of works */
    unsigned run;                /* works since it was idle */
    int64_t run_ms;              /* the time of the first */
    unsigned turn;               /* all works */
    int64_t turn_ms;             /* the time of the first */
    unsigned taken;              /* messages in all; those over earlier connections */
    unsigned taken_before;
    struct session_limits limits; /* of the host that has greeted */
};

struct sched_session *sched_session_new(struct site *site, struct destination *d,
                                        int64_t now_ms);
/* Removes it from its site's counts; its works must be settled. */
void sched_session_leave(struct sched_session *session);
void sched_session_free(struct sched_session *session);
/* Moves it, before its greeting, to a lane, perhaps of another site, which counts it. */
void sched_session_move(struct sched_session *session, struct lane *lane);
void sched_session_greet(struct sched_session *session);
/* Sets idle, and returns the change: -1, 0, 1. */
int sched_session_set_idle(struct sched_session *session, bool idle);

/* It gets no more mail, so that its owner ends it. */
void sched_session_release(struct sched_session *session);
/* The lane of its next work; NULL: nothing waits for it. */
struct lane *sched_session_lane(const struct sched_session *session);

/* Whether it may take a work. A second one needs a session within the window, a site
 * without a rate, and mail that may be early (sched/flow.h). */
bool sched_session_has_space(const struct sched_session *session, int64_t now_ms);
/* Takes the next transaction of its lane. */
struct work *sched_session_begin(struct sites *set, struct sched_session *session,
                                 int64_t now_ms);
struct work *sched_session_newest_work(struct sched_session *session);
/* The slot of an open index of the work. */
unsigned sched_session_slot(struct work *w, unsigned index);
/* Ends a work whose recipients are all settled. */
void sched_session_finish(struct sites *set, struct sched_session *session,
                          struct work *w);

#endif
