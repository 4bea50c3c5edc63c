/* Hosts: the whole daemon on its disk, started, reloaded, ended and killed; several of
 * them in one time, each with a disk of its own or as processes of one machine. */
#ifndef T_ROOF_HOST_H
#define T_ROOF_HOST_H

#include "admin/startup/daemon.h"

enum {
    HOSTS_MAX = 8,
    HOST_FILE_MAX = 64 * 1024,
    HOST_OVERRIDES_MAX = 10,
    HOST_OVERRIDE_SIZE = 120
};
#define HOST_FOLDER  "/etc/petrel"
#define HOST_FILE    HOST_FOLDER "/petrel.conf"
#define HOST_SPOOL   "/spool"
#define HOST_CONTROL "/run/control"

struct world;

struct host {
    const char *name;                      /* in the trace */
    unsigned slices, slice;                /* of its spool: slice of slices */
    char control[HOST_OVERRIDE_SIZE - 20]; /* its socket */
    unsigned process;     /* of the network and of its disk; from 1 on */
    struct world *disk;   /* while another one is the current one */
    struct host *machine; /* whose disk and power it uses: itself, or another */
    unsigned form,
        newest; /* of its files; the highest of those that ran on its disk (upgrade.h) */
    /* Settings, as by -o; "": none. The first three are set at each start. */
    char overrides[HOST_OVERRIDES_MAX][HOST_OVERRIDE_SIZE];
    char *override_list[HOST_OVERRIDES_MAX + 1];
    struct daemon daemon;
    bool running;
    bool in_order;   /* its last end was */
    bool is_shared;  /* its spool has other daemons: no log has all lines of its mail */
    bool leaves;     /* it is to end by itself */
    bool is_idle;    /* nothing is under way that a stop would leave open */
    int64_t step_ms; /* of its wall clock */
    int64_t stepped_ms; /* when that changed last */
    uint64_t seed;
    struct buffer output; /* of a line that is not complete */
    unsigned starts, kills, cuts, reloads;
    /* Faults of the disk for this process alone, after so many more of its calls; 0: none. */
    uint64_t dies_after, fails_after;
    bool dies_by_cut;
    int fails_with;
    uint64_t turns, idle_turns; /* the latter in succession */
    uint64_t task_turns, lines; /* turns of a posted task, likewise; lines of its log */
    uint64_t lines_before;      /* of them: before its last start */
    int64_t started_ms, turned_ms; /* when it began, and its last turn was */
    void (*fill_dns)(struct dns *dns);
    void (*stopped)(struct host *h);
};

/* The one that clients give their mail to; it exists always. Its disk is the current one
 * whenever no host is at work. */
extern struct host host;
/* Another one, with a disk of its own or, as a further process, on that of machine. */
struct host *host_add(const char *name, uint64_t seed, struct host *machine);
/* All of them, host first: NULL gives the first, the last one gives NULL. */
struct host *host_next(const struct host *h);

/* The number of its log (law_log.h): hosts of one machine share it. */
unsigned host_log(const struct host *h);

/* A file on its disk, durable. */
void host_write_file(struct host *h, const char *folder, const char *name,
                     struct text content);
/* The file of settings, as the next start or reload reads it. */
void host_write_settings(struct host *h, struct text content);
/* From here to host_leave() calls are its own. */
void host_enter(struct host *h);
void host_leave(void);
/* False: it does not start, and has said why. */
bool host_start(struct host *h);
void host_reload(struct host *h);
void host_terminate(struct host *h);
/* A power cut ends all processes of its machine: stopped() is called for the others. */
void host_kill(struct host *h, bool power_cut);
/* Each line of their logs, without its time, goes there, too. */
void hosts_on_line(void (*heard)(const struct host *h, struct text line));
/* When the first of all has work, and which it is; INT64_MAX: never. */
int64_t hosts_due_ms(struct host **first);
/* One turn of it. */
void host_turn(struct host *h);
/* An injector has written into the spool of host: all of its daemons look. */
void hosts_pull_trigger(void);
/* Lines that it has said wait to be written: many of them do, for some milliseconds. */
bool host_has_unwritten(const struct host *h);
/* Messages that its queue has; 0 when it does not run. */
size_t host_mail(const struct host *h);

#endif
