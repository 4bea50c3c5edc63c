/* The findings of the daemon: the sources of their facts, and the requests for them. */
#ifndef ADMIN_STARTUP_FINDINGS_WIRING_H
#define ADMIN_STARTUP_FINDINGS_WIRING_H

#include "admin/control/questions.h"
#include "admin/findings/findings.h"
#include "admin/history/history.h"
#include "admin/startup/configuration.h"
#include "defrag/registry/registry.h"
#include "smtp/session/listener.h"

enum { FINDINGS_FILES_MAX = 16, FINDINGS_PATH_MAX = 1024 };

/* The last walk through the sites. */
struct findings_mail {
    struct finding_sites sites;
    int64_t rest_us; /* loop_clock_us(): no further walk before */
};

/* A count that grows now and then, zeroed before the first look. */
struct findings_growth {
    uint64_t count;
    int64_t until_ms; /* monotonic: it has grown recently */
};

struct findings_daemon {
    /* Set by the owner. */
    struct loop *loop;
    struct log *log;
    /* Private, zeroed before the first look. */
    struct findings_growth lost, namesakes;
    struct tls_certificate certificate;
};

struct findings_wiring {
    /* Set by the owner before the start. */
    struct loop *loop;
    struct log *log;
    struct event_hub *events;
    struct manager *manager;
    const struct listener *listener;
    struct dns *dns;
    struct questions *questions;
    const struct history *history;
    const struct registry *registry; /* NULL: local */
    const struct sandbox *sandbox;
    bool (*is_draining)(void *context);
    void *context; /* the daemon, whose parts are asked */
    /* Private. */
    struct findings *findings;
    struct disk *here;             /* for files of the settings */
    struct finding_facts settings; /* those that only a reload changes */
    struct faults settled;         /* of the settings */
    char name_servers[FINDINGS_NAMED_TEXT_MAX];
    struct findings_file {
        char path[FINDINGS_PATH_MAX];
        struct disk_info info;
    } files[FINDINGS_FILES_MAX]; /* when they were read; more are not looked at */
    size_t file_count;
    struct findings_mail mail;
    struct findings_daemon daemon;
    uint16_t smtp_port;
    struct queue_apart apart;
    int64_t apart_ms;
};

/* Before the sandbox, as the daemon's user. */
void findings_wiring_start(struct findings_wiring *wiring,
                           const struct configuration *configuration);
/* NULL: the reload was refused. */
void findings_wiring_reload(struct findings_wiring *wiring,
                            const struct configuration *configuration);
void findings_wiring_stop(struct findings_wiring *wiring);

/* Fills the members about waiting mail, of `sites` all but the port. A walk through very
 * many sites takes a two hundredth of the time at most. */
void findings_mail_collect(struct findings_mail *mail, struct manager *manager,
                           int64_t now_ms, struct finding_facts *facts);
/* tls: the certificates in force; NULL: none. Facts may point into daemon. */
void findings_daemon_collect(struct findings_daemon *daemon,
                             const struct tls_server *tls,
                             const struct manager_fragments *fragments,
                             struct finding_facts *facts);

#endif
