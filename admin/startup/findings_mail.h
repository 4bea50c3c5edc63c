/* The facts about mail and sites that findings judge. */
#ifndef ADMIN_STARTUP_FINDINGS_MAIL_H
#define ADMIN_STARTUP_FINDINGS_MAIL_H

#include "admin/findings/findings.h"
#include "queue/manager/manager.h"

/* The last walk through the sites. */
struct findings_mail {
    struct finding_sites sites;
    int64_t rest_us; /* loop_clock_us(): no further walk before */
};

/* Fills the members about waiting mail, of `sites` all but the port. A walk through very
 * many sites takes a two hundredth of the time at most. */
void findings_mail_collect(struct findings_mail *mail, struct manager *manager,
                           int64_t now_ms, struct finding_facts *facts);

#endif
