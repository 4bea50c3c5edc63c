/* Connects policies of MTA-STS with delivery: their cache, and their fetcher. */
#ifndef ADMIN_STARTUP_STS_WIRING_H
#define ADMIN_STARTUP_STS_WIRING_H

#include "admin/findings/findings.h"
#include "admin/settings/options.h"
#include "admin/startup/token_keeper.h"

/* Zeroed until mta_sts is on. */
struct sts_wiring {
    struct http_caller *http;
    struct sts_cache *cache;
};

/* At startup and reload; of the keeper, the parts of the daemon. */
void sts_wiring_use(struct sts_wiring *wiring, const struct token_keeper *keeper,
                    const struct options *options);
/* Names the policies that cannot be fetched. */
void sts_wiring_find(const struct sts_wiring *wiring, struct finding_facts *facts);
/* After delivery_free(). */
void sts_wiring_stop(struct sts_wiring *wiring);

#endif
