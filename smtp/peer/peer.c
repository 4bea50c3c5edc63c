/* The peer door as a whole: secrets, listeners, and the calls of this host. */
#include "smtp/peer/peer.h"

#include "base/crypto/digest.h"
#include "base/log/log.h"
#include "base/memory.h"
#include "smtp/peer/peer_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* --- Secrets ------------------------------------------------------------------------ */

/* Cuts the next line that is not empty off *rest. */
static bool
peer_next_secret(struct text *rest, struct text *secret)
{
    struct text line;
    while (rest->length > 0 && text_cut(rest, '\n', &line)) {
        *secret = text_trim(line);
        if (secret->length > 0)
            return true;
    }
    return false;
}

static size_t
peer_read_secrets(struct text text, struct tls_shared *out)
{
    struct text secret;
    out->count = 0;
    while (out->count < PEER_SECRETS_MAX && peer_next_secret(&text, &secret))
        out->secrets[out->count++] = secret;
    return out->count;
}

/* A secret is not quoted. */
static bool
peer_check_secrets(struct text text, struct buffer *errors)
{
    struct text secret;
    size_t count = 0;
    bool good = true;
    while (peer_next_secret(&text, &secret)) {
        count++;
        if (secret.length < PEER_SECRET_MIN || secret.length > PEER_SECRET_MAX) {
            (void)!buffer_format(
                errors,
                "cluster_secret: line %zu has %zu bytes, not %d to %d: "
                "openssl rand -hex 32 makes a good one\n",
                count, secret.length, PEER_SECRET_MIN, PEER_SECRET_MAX);
            good = false;
        }
    }
    if (count > PEER_SECRETS_MAX) {
        (void)!buffer_format(errors, "cluster_secret: at most %d lines\n",
                             PEER_SECRETS_MAX);
        good = false;
    }
    return good;
}

bool
peer_check(const struct peer_settings *s, struct buffer *errors)
{
    struct tls_shared shared = {.group = s->group};
    bool good = peer_check_secrets(s->secret, errors);
    if (s->listen_count == 0)
        return good;
    if (s->group[0] == '\0') {
        (void)!buffer_add(errors, TEXT("listen: ?peer is for a group of hosts: set "
                                       "cluster\n"));
        good = false;
    }
    if (good && peer_read_secrets(s->secret, &shared) == 0) {
        (void)!buffer_add(errors,
                          TEXT("listen: ?peer needs cluster_secret, the same on "
                               "all hosts of the group\n"));
        good = false;
    }
    if (s->listen_count > PEER_LISTENERS_MAX) {
        (void)!buffer_format(errors, "listen: at most %d addresses with ?peer\n",
                             PEER_LISTENERS_MAX);
        good = false;
    }
    return good;
}

static void
peer_digest_secrets(const struct tls_shared *shared,
                    unsigned char out[PEER_SECRETS_MAX][DIGEST_SIZE])
{
    for (size_t i = 0; i < shared->count; i++)
        digest_plain(shared->secrets[i], out[i]);
}

/* Whether one that was valid is not valid any more. */
static bool
peer_withdraws(const struct peer *p, const struct tls_shared *fresh)
{
    unsigned char digests[PEER_SECRETS_MAX][DIGEST_SIZE];
    size_t left = 0;
    peer_digest_secrets(fresh, digests);
    for (size_t i = 0; i < p->secret_count; i++)
        for (size_t j = 0; j < fresh->count; j++)
            if (digest_same(p->secrets[i], digests[j], DIGEST_SIZE)) {
                left++;
                break;
            }
    return left < p->secret_count;
}

static bool
peer_take_secrets(struct peer *p, const struct tls_shared *shared, char *error,
                  size_t size)
{
    struct tls *tls;
    struct tls_server *server = NULL;
    struct tls_client *client = NULL;
    if (shared->count > 0) {
        tls = tls_new(error, size);
        if (tls == NULL)
            return false;
        server = tls_server_new_shared(tls, shared, error, size);
        client =
            server != NULL ? tls_client_new_shared(tls, shared, error, size) : NULL;
        tls_free(&tls);
        if (client == NULL) {
            tls_server_free(&server);
            return false;
        }
    }
    tls_server_free(&p->tls_server);
    tls_client_free(&p->tls_client);
    p->tls_server = server;
    p->tls_client = client;
    peer_digest_secrets(shared, p->secrets);
    p->secret_count = shared->count;
    return true;
}

/* --- Calls -------------------------------------------------------------------------- */

static enum peer_link_kind
peer_kind_of(int64_t bytes)
{
    return bytes > PEER_LARGE ? PEER_LINK_LARGE : PEER_LINK_MAIL;
}

static bool
peer_has_room(void *context, const char *host, int64_t bytes)
{
    struct peer *p = context;
    const struct peer_link *l = peer_link_find(p, host, peer_kind_of(bytes));
    return l == NULL || peer_client_has_room(&l->machine, (uint64_t)bytes);
}

static void
peer_give(void *context, const char *host, const struct sibling_gift *gift)
{
    struct peer *p = context;
    int64_t bytes = (int64_t)gift->message.sections + gift->message.content;
    struct peer_link *l = peer_link_get(p, host, peer_kind_of(bytes));
    peer_client_give(&l->machine, gift);
    peer_link_begin(l);
}

static void
peer_ask(void *context, const char *host, struct text line, int64_t timeout_ms,
         const struct sibling_listener *listener)
{
    struct peer *p = context;
    struct peer_link *l = peer_link_get(
        p, host, timeout_ms > PEER_ASK_MS ? PEER_LINK_WORK : PEER_LINK_ASK);
    int64_t until_ms = loop_monotonic_ms(p->setup.loop) + timeout_ms;
    peer_client_ask(&l->machine, line, until_ms, listener);
    peer_link_begin(l);
}

static void
peer_ignore(void *context, void *callback_context)
{
    struct peer *p = context;
    peer_link_ignore_all(p, callback_context);
}

const struct sibling_calls *
peer_calls(struct peer *p)
{
    return &p->calls;
}

/* --- The whole ---------------------------------------------------------------------- */

static bool
peer_listen(struct peer *p, const struct peer_settings *s, char *error, size_t size)
{
    for (size_t i = 0; i < s->listen_count && i < PEER_LISTENERS_MAX; i++) {
        struct net_listener *l =
            net_listen(p->setup.net, &s->listen[i], 0, peer_accept, p, error, size);
        if (l == NULL)
            return false;
        p->listeners[p->listener_count++] = l;
    }
    return true;
}

static int64_t
peer_content_max(const struct peer_settings *s)
{
    int64_t limit = s->message_size_limit;
    return limit > 0 && limit < INT64_MAX / 4 ? limit + limit / 10 : INT64_MAX / 4;
}

struct peer *
peer_new(const struct peer_setup *setup, const struct peer_settings *settings,
         char *error, size_t size)
{
    struct peer *p = memory_new(sizeof(*p));
    struct tls_shared shared = {.group = p->group};
    p->setup = *setup;
    p->content_max = peer_content_max(settings);
    (void)!text_copy(p->group, sizeof(p->group), text_from(settings->group));
    p->calls = (struct sibling_calls){.context = p,
                                      .has_room = peer_has_room,
                                      .give = peer_give,
                                      .ask = peer_ask,
                                      .ignore = peer_ignore};
    peer_read_secrets(settings->secret, &shared);
    if (!peer_take_secrets(p, &shared, error, size) ||
        !peer_listen(p, settings, error, size))
        peer_free(&p);
    return p;
}

void
peer_reload(struct peer *p, const struct peer_settings *settings)
{
    struct tls_shared shared = {.group = p->group};
    char error[TLS_ERROR_MAX];
    p->content_max = peer_content_max(settings);
    peer_accept_reload(p);
    peer_read_secrets(settings->secret, &shared);
    bool withdraws = peer_withdraws(p, &shared);
    if (!peer_take_secrets(p, &shared, error, sizeof(error))) {
        log_say(p->setup.log, LOG_LEVEL_ERROR, "peer", NULL, "%s", error);
        return;
    }
    if (!withdraws)
        return;
    /* A host that knew it may still be connected. */
    log_say(p->setup.log, LOG_LEVEL_INFO, "peer", NULL,
            "a secret is no longer valid: connections are made again");
    peer_accept_end_all(p, "the secret has changed");
    peer_link_end_all(p, "the secret has changed");
}

bool
peer_door(const struct peer *p, size_t index, struct net_address *address,
          struct net_listener_counts *counts)
{
    if (index >= p->listener_count)
        return false;
    *address = *net_listener_address(p->listeners[index]);
    *counts = net_listener_counts(p->listeners[index]);
    return true;
}

struct peer_counts
peer_counts(const struct peer *p)
{
    return p->counts;
}

void
peer_free(struct peer **peer)
{
    struct peer *p = *peer;
    if (p == NULL)
        return;
    *peer = NULL;
    for (size_t i = 0; i < p->listener_count; i++)
        net_listener_free(&p->listeners[i]);
    peer_link_free_all(p);
    peer_accept_end_all(p, "this host stops");
    tls_server_free(&p->tls_server);
    tls_client_free(&p->tls_client);
    digest_forget(p->secrets, sizeof(p->secrets));
    free(p);
}
