/* Shared by simulation*.c. No other file includes this. */
#ifndef T_SIMULATION_SIMULATION_INTERNAL_H
#define T_SIMULATION_SIMULATION_INTERNAL_H

#include "base/heap.h"
#include "sched/limits/bank.h"
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
    EVENT_LINE,
    EVENT_BEAT,    /* of a host */
    EVENT_QUESTION /* of a host, or its answer */
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
    unsigned domain, host;
    unsigned count, open;
    bool failed, begun;
    unsigned char *done; /* by recipient; NULL when there is one */
};

struct station { /* a server */
    struct fake_server server;
    struct line *lines;   /* its sessions, and connections that wait */
    struct line *waiting; /* in its queue, oldest first */
};

/* When transactions began: those of the last five minutes. */
struct begun {
    int64_t *at_us; /* a ring */
    size_t first, count, capacity;
    size_t older; /* of them more than a minute old */
};

struct place { /* a site */
    struct station *stations;
    size_t station_count;
    char *key; /* the scheduler's */
    size_t key_length;
    unsigned open;      /* sessions of all servers and hosts */
    int64_t changed_us; /* since when */
    struct begun tally;
};

/* The mail and sessions of a host at a place. */
struct seat {
    struct line *idle; /* sessions */
    bool is_touched;
    unsigned waiting;  /* messages */
    int64_t served_us; /* since when it waits for a transaction */
};

struct host_batch; /* simulation_host.c */

struct simulation_host {
    size_t number;
    struct sched *sched; /* NULL: it does not run */
    struct heap_node node;
    int64_t wake_us;
    struct simulation_host *next_ready;
    bool is_ready; /* something has happened to it */
    struct line *lines;
    size_t line_count, dead, active, recipients;
    struct seat *seats;             /* by place */
    size_t *touched, touched_count; /* places for which something has changed */
    int64_t looked_us;              /* the time of the last check of all */
    bool is_cut, is_draining, has_bank;
    int64_t listed_us; /* when it last asked who is there */
    int late;          /* of them may be lost */
    int64_t *seen_us;  /* the other hosts, as it knows them; < 0: not there */
    struct event beat, question;
    struct host_batch *batch; /* NULL: no question is under way */
};

struct queue_command { /* an at statement */
    struct event event;
    const struct scenario_change *what;
    struct bank *kept; /* of SCENARIO_BANK_KEEP */
};

struct generator { /* an arrive statement */
    struct event event;
    const struct scenario_arrival *arrival;
    unsigned sent, begun;
    unsigned *took_ms; /* duration, of each message delivered */
    uint64_t sender;   /* one for all, or 0 */
    double *weights;   /* of the domains up to each; NULL: they take turns */
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
    struct heap wakes; /* of hosts */
    struct simulation_host *hosts, *ready, **ready_last;
    struct bank *bank; /* NULL: none */
    bool is_bank_down;
    int64_t *bank_seen_us; /* the hosts that it knows */
    struct place *places;
    struct generator *generators;
    struct queue_command *changes;
    struct mail *mails;
    uint64_t mail_count, ended;
    struct sched_recipient *recipients;         /* for sched_loaded_now() */
    size_t line_count, active, recipient_count; /* of all hosts */
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
void simulation_feedback(struct simulation *s, struct simulation_host *host,
                         size_t place);

/* --- simulation_line.c ------------------------------------------------------------ */

/* SCHED_OPEN. */
void line_open(struct simulation *s, struct simulation_host *host,
               const struct sched_action *action);
/* The time of the line's event has come. */
void line_happened(struct simulation *s, struct event *event);
/* Idle sessions of the place may have mail now. */
void line_touch(struct simulation_host *host, size_t place);
/* Gives mail to idle sessions of the touched places; all: everywhere. False: no session
 * takes any. */
bool line_wake_idle(struct simulation *s, struct simulation_host *host, bool all);
/* The settings of a server have changed. */
void line_station_changed(struct simulation *s, struct station *station);
/* A host is gone: its connections break. */
void line_host_died(struct simulation *s, struct simulation_host *host);

/* --- simulation_host.c ------------------------------------------------------------ */

void simulation_hosts_init(struct simulation *s);
void simulation_hosts_free(struct simulation *s);
/* Something has happened to it. */
void simulation_host_touch(struct simulation *s, struct simulation_host *host);
/* A beat, or a question or its answer. */
void simulation_host_happened(struct simulation *s, struct event *event);
/* Its questions to the bank. */
void simulation_host_ask(struct simulation *s, struct simulation_host *host);
/* A change of the bank or of hosts. */
void simulation_host_change(struct simulation *s, struct queue_command *command);
/* The seat of the mail's host at the place that the mail goes to. */
struct seat *simulation_mail_seat(const struct simulation *s, const struct mail *mail);
/* The host that mail for this one goes to. */
struct simulation_host *simulation_host_running(struct simulation *s, size_t number);
/* Mail for it, if it runs. */
void simulation_host_give(struct simulation *s, struct simulation_host *host,
                          const struct mail *mail);
/* It has ended its sessions while draining: the others get its mail. */
void simulation_host_drained(struct simulation *s, struct simulation_host *host);

/* --- simulation_count.c: the totals that receivers see ---------------------------- */

/* A message waits at the place, or has ended, for better or worse. */
void simulation_count_wait(const struct simulation *s, struct seat *seat);
void simulation_count_gone(struct seat *seat);
/* A transaction begins. */
void simulation_count_begin(struct simulation *s, struct seat *seat, size_t place);
/* The sessions of its servers have changed. */
void simulation_count_sessions(struct simulation *s, size_t place);
void simulation_count_end(struct simulation *s);

/* --- simulation_report.c, for its tests ------------------------------------------- */

/* Connections that were refused or timed out, for each 100 messages delivered. */
double simulation_refused_per_100(const struct simulation_result *result);
/* The use, in percent, of that number of sessions at a site (by its number in the
 * scenario) from the first arrival to the end of the site. */
double simulation_use(const struct simulation_result *result, size_t site,
                      unsigned sessions);
double simulation_per_minute(const struct rate *rate);
/* The use of a site's shared limits, in percent: transactions from the first arrival to
 * the last delivery, those of the worst minute or five minutes, and open sessions. */
double simulation_rate_use(const struct simulation_result *result, size_t site);
double simulation_worst(const struct simulation_site *site, int minutes);
double simulation_session_use(const struct simulation_result *result, size_t site);

#endif
