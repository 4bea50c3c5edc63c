/* The simulation's parts among themselves. Internal to sched/. */
#ifndef SCHED_SIMULATION_INTERNAL_H
#define SCHED_SIMULATION_INTERNAL_H

#include "base/heap.h"
#include "sched/simulate/simulation.h"

#define SIMULATION_START_MS INT64_C(1700000000000) /* the scheduler's clock then */

struct simulation;
struct line; /* a connection of the client, or what wants to be one */

/* Something that happens at a time; among equals in the order they were planned. */
enum event_kind { EVENT_ARRIVAL, EVENT_CHANGE, EVENT_LINE };
struct event {
    struct heap_node node;
    enum event_kind kind;
    int64_t at_us;
    uint64_t number;
};

struct mail {
    int64_t born_us;
    unsigned group, number; /* number: in its group */
    unsigned count, open;
    bool failed;
    unsigned char *done; /* by recipient; NULL when there is one */
};

struct station { /* a server */
    struct fake_server receiver;
    struct line *lines;   /* sessions of it, and those that wait for one */
    struct line *waiting; /* in its queue, oldest first */
};

struct place { /* a site */
    struct station *stations;
    size_t station_count;
    struct line *idle; /* sessions */
    bool is_touched;
    char *key; /* the scheduler's */
    size_t key_length;
};

struct queue_command { /* an at statement */
    struct event event;
    const struct scenario_change *what;
};

struct generator { /* an arrive statement */
    struct event event;
    const struct scenario_arrival *arrival;
    unsigned sent;
    unsigned *took_ms; /* of each message delivered */
    uint64_t sender;   /* one for all, or 0 */
};

struct simulation {
    const struct scenario *scenario;
    struct simulation_result *result;
    void (*trace)(void *context, struct text line);
    void *context;
    struct sched *sched;
    struct target target;
    int64_t now_us;
    uint64_t random, number; /* number: of events */
    struct heap events;
    struct place *places;
    struct generator *generators;
    struct queue_command *changes;
    struct mail *mails;
    uint64_t mail_count, ended;
    struct sched_recipient *recipients; /* to be handed over */
    struct line *lines;
    size_t line_count, dead;
    size_t *touched, touched_count; /* places: something has changed for them */
    int64_t looked_us;              /* at all of them */
    double window_sum, window_squares;
};

int64_t simulation_now_ms(const struct simulation *s);
void simulation_plan(struct simulation *s, struct event *event, int64_t at_us);
void simulation_cancel(struct simulation *s, struct event *event);
/* "sent", "d1.example": one line, when a trace is wanted. */
void simulation_note(struct simulation *s, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* A verdict for one recipient. */
void simulation_verdict(struct simulation *s, struct mail *mail, unsigned index,
                        const struct outcome *outcome);
/* The scheduler was told how something went. */
void simulation_feedback(struct simulation *s, size_t place);

/* SCHED_OPEN. */
void line_open(struct simulation *s, const struct sched_action *action);
/* Its time has come. */
void line_happened(struct simulation *s, struct event *event);
/* Idle sessions there may have mail now. */
void line_touch(struct simulation *s, size_t place);
/* Those of the places touched are given it; all: everywhere. False: none wants any. */
bool line_wake_idle(struct simulation *s, bool all);
/* The settings of a server have changed. */
void line_station_changed(struct simulation *s, struct station *station);
/* All that are left. */
void line_free_all(struct simulation *s);

#endif
