/* The daemon: its parts, and their order at startup, reload and stop.
 *
 * A process may start and stop daemons several times, also several of them side by side:
 * nothing here is of the process. Its identity, signals and sandbox are mta.c's.
 *
 * daemon_parts is the order: startup and reload go through it forwards, the stop goes
 * backwards. A part uses those above its row, whose members it finds in struct daemon.
 * Settings are checked as a whole before anything is touched. The queue is opened before
 * the first client can connect.
 */
#ifndef ADMIN_STARTUP_DAEMON_H
#define ADMIN_STARTUP_DAEMON_H

#include "admin/control/control_server.h"
#include "admin/control/fan_out.h"
#include "admin/control/flush.h"
#include "admin/control/health.h"
#include "admin/findings/findings.h"
#include "admin/api/http_routes.h"
#include "admin/startup/configuration.h"
#include "admin/startup/notify.h"
#include "base/disk/disk.h"
#include "base/event/event_post.h"
#include "queue/copies/adoption.h"
#include "queue/copies/copies_keeper.h"
#include "queue/group/give.h"
#include "queue/group/group.h"
#include "queue/group/take.h"
#include "queue/manager/local.h"
#include "queue/poster/poster.h"
#include "smtp/delivery/smarthost_health.h"
#include "smtp/session/listener.h"

enum { DAEMON_ERROR_MAX = 512 };

/* The parts start in phases, between which the owner changes the rights of the process. */
enum daemon_phase {
    DAEMON_OPEN, /* no files of their own yet: log, sockets */
    DAEMON_QUEUE, /* as the user to whom the spool belongs: recovery, the way of mail out */
    DAEMON_DOORS, /* with the rights that ports and keys need: listeners */
    DAEMON_LAST,  /* as the final user: the rest, and the plan of the sandbox */
    DAEMON_RUNS   /* in the sandbox */
};

struct daemon;

/* Each function may be NULL. A part that has to end at another place than it starts has
 * two rows. */
struct daemon_part {
    const char *name;
    enum daemon_phase phase;
    int (*start)(struct daemon *d); /* see daemon_start() */
    /* d->configuration is the old one until all parts have the fresh one. */
    void (*reload)(struct daemon *d, struct configuration *fresh);
    void (*stop)(struct daemon *d); /* also if start has failed, or is another row's */
};
extern const struct daemon_part daemon_parts[]; /* the last one has no name */

/* --- Private data of parts --------------------------------------------------------- */

/* part_group.c, zeroed without a group. */
struct part_group {
    struct group *group;
    struct redis *redis;
    struct tls_client *anchors;
    bool has_lead;              /* of the slices of this machine */
    struct cluster_hosts hosts; /* whom the control socket asks */
};

/* part_peer.c, zeroed without a group or a secret. */
struct part_peer {
    struct peer *peer;
    struct take *take;            /* mail that siblings give */
    struct give_setup give;       /* mail for siblings; calls NULL: nobody takes it */
    struct sibling_service door;  /* the view of the peer */
    struct sibling_service gifts; /* the view of take */
    char spool[SIBLING_SPOOL_MAX + 1];
    char address[GROUP_ADDRESS_MAX + 1]; /* where others reach us; "": they cannot */
    char found[GROUP_ADDRESS_MAX + 1];
    int64_t run_ms;
    int64_t refused_ms; /* a minute's begin, and lines on refused hosts in it */
    unsigned refused;
};

/* part_copies.c, zeroed without copies. */
struct part_copies {
    struct copies_settings settings;
    struct copies_engine *engine;
    struct copies_keeper *keeper;
    struct adoption *adoption; /* part_adoption.c */
    char who[ADOPTION_WHO_MAX + 1];
    struct tls_client *anchors;
};

/* part_queue.c: the channel that reassembles fragments. */
struct part_fragments {
    struct defragmenter *channel;
    struct registry *registry;  /* NULL: local */
    struct tls_client *anchors; /* separate, since a reload does not change it */
};

/* part_records.c, zeroed until `events` is set. */
struct part_events {
    struct disk *disk; /* the spool, with syncs of its own: events outlive the queue */
    struct event_spool *spool;
    struct http_caller *http;
    struct event_post *post;
    bool answers; /* the part of the status */
};

/* part_tokens.c, zeroed without an account of `oauth`; and part_delivery.c, zeroed until
 * mta_sts is on. */
struct part_tokens {
    struct http_caller *http;
    struct tokens *tokens;
};
struct part_sts {
    struct http_caller *http;
    struct sts_cache *cache;
};

enum { PART_TLS_FILES_MAX = 2 * TLS_PAIRS_MAX, PART_TLS_WHY_MAX = 600 };

/* A file as it was at some time. */
struct part_tls_file {
    int result; /* 0 or -errno */
    struct disk_info info;
};

/* part_certificates.c: the files as they were when those in use were read, when files were
 * last read, and when they were last looked at. */
struct part_tls {
    struct daemon *daemon;
    bool is_client; /* presented to next hops */
    struct listener_pairs pairs;
    struct part_tls_file used[PART_TLS_FILES_MAX], judged[PART_TLS_FILES_MAX],
        seen[PART_TLS_FILES_MAX];
    struct loop_timer timer;
    char why[PART_TLS_WHY_MAX];
};

enum { PART_FINDINGS_FILES_MAX = 16, PART_FINDINGS_PATH_MAX = 1024 };

/* part_findings.c: a count that grows now and then. */
struct part_findings_growth {
    uint64_t count;
    int64_t until_ms; /* monotonic: it has grown recently */
};

/* part_findings.c: facts from one look to the next. */
struct part_findings {
    struct findings *findings;
    struct disk *here;             /* for files of the settings */
    struct finding_facts settings; /* those that only a reload changes */
    struct faults settled;         /* of the settings */
    struct part_findings_file {
        char path[PART_FINDINGS_PATH_MAX];
        struct disk_info info;
    } files[PART_FINDINGS_FILES_MAX]; /* when they were read; more are not looked at */
    size_t file_count;
    char name_servers[FINDINGS_NAMED_TEXT_MAX];
    char copy_failed_to[MANAGER_COPY_SIZE];
    struct finding_sites sites; /* of the last walk through the sites */
    int64_t rest_us;            /* loop_clock_us(): no further walk before */
    struct part_findings_growth lost, namesakes;
    struct tls_certificate certificate;
    uint16_t smtp_port;
    struct queue_apart apart;
    int64_t apart_ms;
};

/* part_aliases.c */
struct part_aliases {
    struct aliases *table;
    struct alias_files *files;
    struct srs *srs;
    struct verp *verp;
    int srs_error, verp_error; /* why it is blind, as it was logged; 0: it is not */
    int mask_error;            /* the same of the key of log_addresses */
    struct loop_timer timer;
    struct alias_files_reading *reading; /* files that have changed */
    struct buffer errors;                /* of these */
    struct loop_task task;
};

/* part_control.c: the level of the log, and the question that waits for a reload. */
struct part_control {
    enum log_level level; /* of the settings */
    int64_t level_until_ms;
    struct loop_timer level_timer;
    struct loop_task reload_task;
    bool reloading;
};

/* part_drain.c */
enum drain_state {
    DRAIN_RUNNING,
    DRAIN_LEAVING,
    DRAIN_EMPTYING,
    DRAIN_CLOSING,
    DRAIN_GIVING,
    DRAIN_GONE
};
enum { DRAIN_TO_MAX = 1024 /* bytes of names */ };
struct drain {
    enum drain_state state;
    bool empties, gives, manager_drained;
    bool has_given, is_giving; /* in this drain; now */
    bool has_sessions;         /* of clients, when giving began last */
    /* Monotonic: the end of emptying and giving, of closing; the next retry. */
    int64_t until_ms, closed_ms, retry_ms;
    char to[DRAIN_TO_MAX + 1];
    struct give *give;         /* since the first drain that gave; not while it stops */
    struct give_progress last; /* of this drain, when the daemon began to stop */
    bool has_stopped;
    uint64_t given_before;      /* by drains before this one */
    void (*gone)(void *daemon); /* the daemon stops then */
    struct loop_timer timer;
};

/* part_http.c: zeroed until `http` is set, or a client of the control socket asks. */
struct part_http {
    struct http_server *server;
    struct metrics *metrics; /* NULL: no place has them */
    struct live *live;
    struct series *series;
    struct post_door *post;
    struct http_routes routes;
};

/* reload.c: a reload of the settings in as many turns as it takes. */
struct reload { /* zeroed before its first use */
    struct loop *loop;
    struct log *log;
    void (*done)(void *context); /* must call reload_end() */
    void *context;
    /* Private. */
    struct configuration *fresh; /* the settings being read; NULL: no reload is under
                                  * way */
    struct loop_task task;
    json_t *errors; /* of the last reload; NULL: it had none */
};

/* --- The daemon -------------------------------------------------------------------- */

/* All but the first part is zeroed before daemon_read(). */
struct daemon {
    /* Set by the owner. */
    struct options_sources sources; /* what they point to must stay */
    struct loop *loop;              /* the daemon frees it */
    /* Its parts, in their order. */
    struct configuration *configuration;
    struct configuration *started; /* some of it is in force until a restart */
    struct log *log;
    struct notify notify;
    struct event_hub *events;
    struct net *net;
    struct sandbox *sandbox; /* the owner may enter it, once it is planned */
    struct dns *dns;
    struct manager *manager;
    struct part_group group;
    struct part_copies copies;
    struct part_peer peer;
    struct part_fragments fragments;
    struct delivery *delivery;
    struct poster *poster;
    struct http_caller *posts; /* for it */
    struct part_tokens tokens;
    struct part_sts sts;
    struct local *local;
    struct flush *flush;
    struct trials *trials;
    struct control_server *control;
    struct history *history;
    struct part_events kept;
    struct listener *listener;
    struct part_tls tls;         /* its certificates */
    struct part_tls *client_tls; /* those of routes; NULL: there are none */
    struct health health;
    struct part_control answers;
    struct smarthost_health *upstreams;
    struct drain drain;
    struct part_http http;
    struct part_findings findings;
    struct part_aliases aliases;
    struct reload reload;

    char error[DAEMON_ERROR_MAX];    /* why it does not start: one line */
    const struct daemon_part *parts; /* daemon_parts, unless a test has others */
    size_t part_count;               /* those that have started */
    unsigned draining;               /* parts that still end open work */
    bool hands_over;                 /* SIGTERM has come, and siblings take the queue */
    bool ran;
};

/* False: the settings have errors, which are on standard error, and nothing was made. */
bool daemon_read(struct daemon *d);
/* Starts the parts up to the end of that phase that have not started. Returns 0, or a
 * sysexits code: d->error says why. */
int daemon_start(struct daemon *d, enum daemon_phase last);
/* Stops those that have, also after a start that failed, and frees everything. */
void daemon_stop(struct daemon *d);

/* The wishes of signals, once it runs: to read the settings anew; to end, open work
 * first; to end soon, and the second time immediately. The loop then stops. */
void daemon_reload(void *daemon);
void daemon_terminate(void *daemon);
void daemon_interrupt(void *daemon);

/* --- For its parts ------------------------------------------------------------------ */

/* Tells an event of the program itself: started, reloaded, stopped. */
void daemon_tell(const struct daemon *d, enum event_kind kind, const char *text);
/* Callbacks whose context is the daemon. */

/* The reason for which no mail should come, on purpose; NULL: it may. */
const char *daemon_leaves(void *daemon);
/* For callers that show it, not for those that must be quick. */
bool daemon_is_leaving(void *daemon);
/* The state as the other hosts of the group know it: running, leaving, ... */
const char *daemon_state(void *daemon);

#endif
