/* A host: the whole daemon on its disk, started, reloaded, ended and killed. */
#ifndef T_ROOF_HOST_H
#define T_ROOF_HOST_H

#include "admin/startup/daemon.h"

enum { HOST_PROCESS = 1, HOST_FILE_MAX = 64 * 1024 };
#define HOST_FOLDER "/etc/petrel"
#define HOST_FILE HOST_FOLDER "/petrel.conf"
#define HOST_SPOOL "/spool"
#define HOST_CONTROL "/run/control"

struct host {
    struct daemon daemon;
    bool running;
    bool leaves;         /* it is to end by itself */
    bool is_idle;        /* nothing is under way that a stop would leave open */
    int64_t step_ms;     /* of its wall clock */
    uint64_t seed;
    struct buffer output; /* of a line that is not complete */
    unsigned starts, kills, cuts, reloads;
    /* Faults of the disk for this process alone, after so many more of its calls; 0: none. */
    uint64_t dies_after, fails_after;
    int fails_with;
    uint64_t turns, idle_turns; /* the latter in succession */
    void (*fill_dns)(struct dns *dns);
    void (*stopped)(void);
};

extern struct host host;

/* A file on its disk, durable. */
void host_write_file(const char *folder, const char *name, struct text content);
/* The file of settings, as the next start or reload reads it. */
void host_write_settings(struct text content);
/* False: it does not start, and has said why. */
bool host_start(void);
void host_reload(void);
void host_terminate(void);
void host_kill(bool power_cut);
/* When it has work; INT64_MAX: never. */
int64_t host_due_ms(void);
void host_turn(void);

#endif
