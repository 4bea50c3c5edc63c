/* The facts about the process itself, its certificates and its fragments. */
#ifndef ADMIN_STARTUP_FINDINGS_DAEMON_H
#define ADMIN_STARTUP_FINDINGS_DAEMON_H

#include "admin/findings/findings.h"
#include "base/log/log.h"
#include "base/tls/tls.h"
#include "queue/manager/manager.h"

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

/* tls: the certificates in force; NULL: none. Facts may point into daemon. */
void findings_daemon_collect(struct findings_daemon *daemon,
                             const struct tls_server *tls,
                             const struct manager_fragments *fragments,
                             struct finding_facts *facts);

#endif
