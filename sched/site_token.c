/* Sites that lack a token to log in with. */
#include "sched/site.h"

#include "sched/limits/reply_class.h"

struct outcome
site_token_reason(const struct sites *set, const struct site *site)
{
    const char *why;
    (void)token_table_find(&set->transports.tokens, &site->transport->target, &why);
    return outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, REPLY_CLASS_TOKEN_ENHANCED,
                        "%s", why);
}

/* As a death, so that mail does not stay in memory, and expires in time; but only a token
 * ends it, and it says nothing about the servers. */
void
site_lose_token(struct sites *set, struct site *site)
{
    struct outcome why = site_token_reason(set, site);
    site_gain_token(set, site);
    site_revive(set, site);
    site->reason = reason_open(&site->reasons, &why);
    site->suspended = reason_open(&site->reasons, &why);
    site->dead = site->lacks_token = true;
    site->has_greeted = site->is_due = false;
    site->dead_until_ms = INT64_MAX;
}

void
site_gain_token(struct sites *set, struct site *site)
{
    if (!site->lacks_token)
        return;
    site->lacks_token = false;
    set->dead_count++; /* which site_revive() takes back */
    site_revive(set, site);
}
