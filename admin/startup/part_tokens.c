/* Tokens of OAuth2 for delivery and scheduler: sessions that log in ask for tokens, and mail
 * waits while there is none. */
#include "admin/startup/parts.h"

#include "base/http/http_call.h"
#include "smtp/oauth/tokens.h"

static void
part_tokens_tell(void *context, const struct tokens_view *view)
{
    static const enum sched_token states[] = {
        [TOKENS_NO_ACCOUNT] = SCHED_TOKEN_NONE,
        [TOKENS_READY] = SCHED_TOKEN_THERE,
        [TOKENS_ASKED] = SCHED_TOKEN_AWAITED,
        [TOKENS_FAILED] = SCHED_TOKEN_FAILED,
    };
    struct daemon *d = context;
    struct sched_login login = {.host = text_from(view->account->host),
                                .user = text_from(view->account->user),
                                .port = view->account->port};
    manager_set_token(d->manager, &login, states[view->status], view->why);
}

static void
part_tokens_make(struct daemon *d)
{
    d->tokens.http = http_caller_new(
        &(struct http_caller_settings){.loop = d->loop,
                                       .net = d->net,
                                       .dns = d->dns,
                                       .tls = delivery_tls(d->delivery)});
    d->tokens.tokens = tokens_new(
        &(struct tokens_settings){.loop = d->loop,
                                  .log = d->log,
                                  .spool = queue_disk(manager_queue(d->manager)),
                                  .http = d->tokens.http,
                                  .changed = part_tokens_tell,
                                  .context = d});
    delivery_set_tokens(d->delivery, d->tokens.tokens);
}

int
part_tokens_start(struct daemon *d)
{
    part_tokens_reload(d, d->configuration);
    return 0;
}

void
part_tokens_reload(struct daemon *d, struct configuration *fresh)
{
    const struct accounts *accounts = &fresh->accounts;
    if (d->tokens.tokens == NULL && accounts->count == 0)
        return;
    if (d->tokens.tokens == NULL)
        part_tokens_make(d);
    tokens_set(d->tokens.tokens, accounts->list, accounts->count);
    tokens_each(d->tokens.tokens, part_tokens_tell, d);
}

bool
part_tokens_drain(struct daemon *d, int64_t grace_ms, void (*done)(void *daemon))
{
    if (d->tokens.tokens != NULL)
        tokens_drain(d->tokens.tokens, grace_ms, done, d);
    return d->tokens.tokens != NULL;
}

void
part_tokens_stop(struct daemon *d)
{
    tokens_free(&d->tokens.tokens);
    http_caller_free(&d->tokens.http);
}
