/* Tokens for delivery and scheduler. */
#include "admin/startup/token_keeper.h"

#include "base/http/http_call.h"

static void
token_keeper_tell(void *context, const struct tokens_view *view)
{
    static const enum sched_token states[] = {
        [TOKENS_NO_ACCOUNT] = SCHED_TOKEN_NONE,
        [TOKENS_READY] = SCHED_TOKEN_THERE,
        [TOKENS_ASKED] = SCHED_TOKEN_AWAITED,
        [TOKENS_FAILED] = SCHED_TOKEN_FAILED,
    };
    struct token_keeper *keeper = context;
    struct sched_login login = {.host = text_from(view->account->host),
                                .user = text_from(view->account->user),
                                .port = view->account->port};
    manager_set_token(keeper->manager, &login, states[view->status], view->why);
}

static void
token_keeper_start(struct token_keeper *k)
{
    k->http = http_caller_new(
        &(struct http_caller_settings){.loop = k->loop,
                                       .net = k->net,
                                       .dns = k->dns,
                                       .tls = delivery_tls(k->delivery)});
    k->tokens = tokens_new(
        &(struct tokens_settings){.loop = k->loop,
                                  .log = k->log,
                                  .spool = queue_disk(manager_queue(k->manager)),
                                  .http = k->http,
                                  .changed = token_keeper_tell,
                                  .context = k});
    delivery_set_tokens(k->delivery, k->tokens);
}

void
token_keeper_use(struct token_keeper *k, const struct accounts *accounts)
{
    if (k->tokens == NULL && accounts->count == 0)
        return;
    if (k->tokens == NULL)
        token_keeper_start(k);
    tokens_set(k->tokens, accounts->list, accounts->count);
    tokens_each(k->tokens, token_keeper_tell, k);
}

bool
token_keeper_drain(struct token_keeper *k, int64_t grace_ms,
                   void (*done)(void *context), void *context)
{
    if (k->tokens != NULL)
        tokens_drain(k->tokens, grace_ms, done, context);
    return k->tokens != NULL;
}

void
token_keeper_stop(struct token_keeper *k)
{
    tokens_free(&k->tokens);
    http_caller_free(&k->http);
}
