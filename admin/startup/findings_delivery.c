/* Collects the facts about logins and keys of delivery. */
#include "admin/startup/findings_delivery.h"

#include "admin/startup/daemon.h"
#include "smtp/oauth/tokens.h"

#include <stdio.h>

/* A provider that cannot be reached is no refusal: it is asked again soon. */
static void
findings_delivery_name_account(void *context, const struct tokens_view *view)
{
    char subject[2 * HTTP_URL_MAX], object[2 * HTTP_URL_MAX];
    const struct oauth_account *a = view->account;
    if (!view->refused)
        return;
    snprintf(subject, sizeof(subject), "%s at %s", a->user, a->host);
    snprintf(object, sizeof(object), "%s %s", a->host, a->user);
    findings_name_object(context, "oauth_refused", subject, view->trouble, object);
}

static void
findings_delivery_name_key(void *context, const char *name, const char *domain,
                           const char *why)
{
    findings_name_object(context, "dkim_failed", name, why, domain);
}

void
findings_delivery_collect(const struct daemon *daemon, struct finding_facts *facts)
{
    if (daemon->tokens.tokens != NULL)
        tokens_each(daemon->tokens.tokens, findings_delivery_name_account, facts);
    delivery_each_key_trouble(daemon->delivery, findings_delivery_name_key, facts);
}
