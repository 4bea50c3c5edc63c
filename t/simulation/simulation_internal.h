/* Shared by simulation*.c. No other file includes this. */
#ifndef T_SIMULATION_SIMULATION_INTERNAL_H
#define T_SIMULATION_SIMULATION_INTERNAL_H

#include "base/heap.h"
#include "t/simulation/simulation.h"
#include "t/support/message_now.h"

/* The scheduler's clock at the start. */
#define SIMULATION_START_MS INT64_C(1700000000000)

struct simulation;
struct line; /* a connection of the client, from its request on */

/* Something that happens at a time; equals in the order in which they were planned. */
enum event_kind {
    EVENT_ARRIVAL,
    EVENT_CHANGE,
    EVENT_LINE
};
struct event {
    struct heap_node node;
    enum event_kind kind;
    int64_t at_us;
    uint64_t number;
};

struct mail {
    int64_t born_us;
    unsigned group, number; /* number: in its group */
    unsigned domain;
    unsigned count, open;
    bool failed, begun;
    unsigned char *done; /* by recipient; NULL when there is one */
};

struct station { /* a server */
    struct fake_server server;
    struct line *lines;   /* its sessions, and connections that wait */
    struct line *waiting; /* in its queue, oldest first */
};

struct place { /* a site */
    struct station *stations;
    size_t station_count;
    char *key; /* the scheduler's */
    size_t key_length;
    struct line *idle; /* sessions of the client */
    bool is_touched;
};

struct queue_command { /* an at statement */
    struct event event;
    const struct scenario_change *what;
};

struct generator { /* an arrive statement */
    struct event event;
    const struct scenario_arrival *arrival;
    unsigned sent, begun;
    unsigned *took_ms; /* duration, of each message delivered */
    uint64_t sender;   /* one for all, or 0 */
};

struct simulation {
    const struct scenario *scenario;
    struct simulation_result *result;
    void (*trace)(void *context, struct text line);
    void *context;
    struct target targets[SCENARIO_TARGETS_MAX];
    int64_t now_us, now_ms; /* now_ms: of the wall clock */
    uint64_t random, number; /* number: of events */
    struct heap events;
    struct sched *sched;
    int64_t wake_us; /* of the scheduler; INT64_MAX: never */
    bool is_ready;   /* something has happened to the client */
    struct line *lines;
    size_t *touched, touched_count; /* places for which something has changed */
    int64_t looked_us;              /* the time of the last check of all */
    struct place *places;
    struct generator *generators;
    struct queue_command *changes;
    struct mail *mails;
    uint64_t mail_count, ended;
    struct sched_recipient *recipients;         /* for sched_loaded_now() */
    size_t line_count, dead;
    double window_sum, window_squares;
};

void simulation_plan(struct simulation *s, struct event *event, int64_t at_us);
void simulation_cancel(struct simulation *s, struct event *event);
/* One line of the trace, if there is one: "sent", "d1.example". */
void simulation_note(struct simulation *s, const char *what, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* In 0 .. 1. */
double simulation_chance(struct simulation *s);
/* A verdict for one recipient. */
void simulation_verdict(struct simulation *s, struct mail *mail, unsigned index,
                        const struct outcome *outcome);
/* A session begins to deliver it. */
void simulation_begin(struct simulation *s, struct mail *mail);
/* The scheduler got feedback for that place. */
void simulation_feedback(struct simulation *s, size_t place);

/* --- simulation_line.c ------------------------------------------------------------ */

/* SCHED_OPEN. */
void line_open(struct simulation *s, const struct sched_action *action);
/* The time of the line's event has come. */
void line_happened(struct simulation *s, struct event *event);
/* Idle sessions of the place may have mail now. */
void line_touch(struct simulation *s, size_t place);
/* Gives mail to idle sessions of the touched places; all: everywhere. False: no session
 * takes any. */
bool line_wake_idle(struct simulation *s, bool all);
/* The settings of a server have changed. */
void line_station_changed(struct simulation *s, struct station *station);
/* The end: all connections break. */
void line_end_all(struct simulation *s);

/* --- simulation_report.c, for its tests ------------------------------------------- */

/* Connections that were refused or timed out, for each 100 messages delivered. */
double simulation_refused_per_100(const struct simulation_result *result);
/* The use, in percent, of that number of sessions at a site (by its number in the
 * scenario) from the first arrival to the end of the site. */
double simulation_use(const struct simulation_result *result, size_t site,
                      unsigned sessions);

#endif
