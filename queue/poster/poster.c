/* Sessions: connected, given mail, signed, sent, judged; then the next message. */
#include "queue/poster/poster.h"

#include "base/crypto/base64.h"
#include "base/crypto/webhook.h"
#include "base/disk/disk.h"
#include "base/http/http_call.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "queue/poster/poster_body.h"
#include "queue/poster/poster_reply.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

enum {
    FIELDS_MAX = HTTP_BODY_MAX,
    SIGN_BYTES = 256 * 1024, /* read in a turn */
    ID_MAX = 48,
    TOKEN_MAX = 16 * 1024 /* of a file */
};

struct post {
    struct post *prev, *next;
    struct poster *poster;
    struct sched_session *session;
    const struct target *target;
    struct http_call *call;
    struct loop_task task; /* signs */
    bool in_request;
    struct delivery_request request;
    struct poster_body body;
    struct buffer envelope; /* as JSON */
    int64_t octets;         /* of the body, once it has been read */
    bool is_broken;         /* it could not be read */
    struct webhook webhook;
    char id[ID_MAX];
    int64_t now_s;                 /* of webhook-timestamp */
    int64_t opened_ms, request_ms; /* monotonic */
    struct timing timing;
};

struct poster {
    struct poster_settings settings;
    const struct secrets *secrets;
    struct post *posts;
    http_called *on_called;
    void (*on_ready)(void *post);
};

/* --- Ends --------------------------------------------------------------------------- */

static void
poster_end(struct post *post, const struct outcome *why)
{
    struct poster *p = post->poster;
    assert(!post->in_request);
    http_call_cancel(&post->call);
    loop_unpost(p->settings.loop, &post->task);
    DL_DELETE(p->posts, post);
    loop_release(p->settings.loop, free, post);
    manager_session_ended(p->settings.manager, post->session, why);
}

static void
poster_settle(struct post *post, const struct outcome *outcome)
{
    struct poster *p = post->poster;
    struct delivery_request request = post->request;
    post->timing.transmit_ms = loop_monotonic_ms(p->settings.loop) - post->request_ms;
    loop_unpost(p->settings.loop, &post->task);
    poster_body_close(&post->body);
    buffer_free(&post->envelope);
    digest_forget(&post->webhook, sizeof(post->webhook));
    post->in_request = false;
    for (size_t i = 0; i < request.count; i++)
        manager_settled(p->settings.manager, &request, i, outcome, &post->timing);
    post->timing.connect_ms = 0; /* only the first message has waited for it */
}

/* Last in its function. */
static void
poster_give_up(struct post *post, const struct outcome *why)
{
    http_call_cancel(&post->call);
    if (post->in_request)
        poster_settle(post, why);
    poster_end(post, why);
}

static void
poster_stop(struct post *post)
{
    struct outcome why = outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.2",
                                      "Petrel is shutting down");
    poster_give_up(post, &why);
}

/* --- The request -------------------------------------------------------------------- */

/* Stable over attempts, restarts and hosts, as long as the recipients are the same: the id
 * of the message at its birth, and a digest of them. */
static void
poster_write_id(struct post *post)
{
    const struct envelope *e = post->request.envelope;
    unsigned char digest[DIGEST_SIZE];
    char hex[2 * 8 + 1];
    struct digest d;
    digest_begin(&d);
    for (size_t i = 0; i < post->request.count; i++) {
        digest_add(&d, e->recipients[post->request.indexes[i]].address);
        digest_add(&d, TEXT("\n"));
    }
    digest_end(&d, digest);
    text_hex(digest, 8, hex);
    struct text id =
        e->moved.first.length > 0 ? e->moved.first : text_from(ID_TEXT(e->id));
    snprintf(post->id, sizeof(post->id), "%.*s-%s",
             TEXT_ARGS(text_before(id, ID_LENGTH)), hex);
}

/* Without the path of a file, since the sender of the mail may read it. */
static struct outcome
poster_lacks(const struct post *post, struct text user, const char *what)
{
    return outcome_make(VERDICT_DEFERRED, BLAME_SITE, 0, "4.3.5",
                        "cannot post to %.100s as %.*s: %s", post->target->host,
                        TEXT_ARGS(text_before(user, 64)), what);
}

/* The secret of that name, in memory of its own. False: why says it. */
static bool
poster_take_secret(const struct post *post, struct text user, struct buffer *out,
                   struct outcome *why)
{
    const struct target *t = post->target;
    const struct secret *secret =
        secrets_find(post->poster->secrets, text_from(t->host), t->port, user);
    char *content;
    size_t length;
    if (secret == NULL || secret->is_account) {
        *why = poster_lacks(post, user, "it is no longer in auth_passwords");
        return false;
    }
    if (!secret->is_token)
        return buffer_add(out, secret->value);
    int error = disk_read_regular(secret->value.at, TOKEN_MAX, &content, &length);
    if (error < 0) {
        char what[128];
        snprintf(what, sizeof(what), "its token file: %s", disk_explain(error));
        *why = poster_lacks(post, user, what);
        return false;
    }
    struct text token = text_trim(text_of(content, length));
    bool good = token.length > 0 && !text_has_control(token) && buffer_add(out, token);
    digest_forget(content, length);
    free(content);
    if (!good)
        *why = poster_lacks(post, user, "its token file is empty, or no token");
    return good;
}

static bool
poster_add_authorization(const struct post *post, struct buffer *out,
                         struct outcome *why)
{
    struct text user = target_user(post->target);
    bool bearer = strcmp(post->target->auth, "bearer") == 0;
    struct buffer plain;
    if (user.length == 0)
        return true;
    buffer_init(&plain, TOKEN_MAX + SECRETS_USER_MAX);
    bool good =
        (bearer || (buffer_add(&plain, user) && buffer_add_byte(&plain, ':'))) &&
        poster_take_secret(post, user, &plain, why);
    good = good && buffer_add(out, TEXT("Authorization: ")) &&
           (bearer ? buffer_add(out, TEXT("Bearer ")) &&
                         buffer_add(out, buffer_text(&plain))
                   : buffer_add(out, TEXT("Basic ")) &&
                         base64_encode(buffer_text(&plain), out)) &&
           buffer_add(out, TEXT("\r\n"));
    buffer_forget(&plain);
    return good;
}

/* An address has no line end; what else a quoted local part may hold is no field. */
static bool
poster_add_address(const char *name, struct text address, struct buffer *out)
{
    return buffer_format(out, "%s: ", name) && !text_has_control(address) &&
           buffer_add(out, address) && buffer_add(out, TEXT("\r\n"));
}

static bool
poster_add_recipient(const struct post *post, struct text address, struct buffer *out)
{
    struct text to = route_recipient(post->target, address);
    return poster_add_address("X-Petrel-To", to, out) &&
           (post->target->to[0] == '\0' ||
            poster_add_address("X-Original-To", address, out));
}

static bool
poster_add_envelope(const struct post *post, struct buffer *out)
{
    const struct envelope *e = post->request.envelope;
    const unsigned *indexes = post->request.indexes;
    bool good =
        buffer_format(out, "X-Petrel-Id: %s\r\n", ID_TEXT(e->id)) &&
        poster_add_address("X-Petrel-From",
                           envelope_sender_of(e, &e->recipients[indexes[0]]), out);
    for (size_t i = 0; i < post->request.count; i++)
        good =
            good && poster_add_recipient(post, e->recipients[indexes[i]].address, out);
    return good;
}

/* The envelope as members of JSON, each with its comma; none without JSON. */
static bool
poster_add_members(struct post *post)
{
    const struct envelope *e = post->request.envelope;
    const unsigned *indexes = post->request.indexes;
    struct json_writer w = {&post->envelope, false};
    if (!post->target->is_json)
        return true;
    json_put_string(&w, TEXT("\"id\":"), text_from(ID_TEXT(e->id)));
    json_put_string(&w, TEXT(",\"from\":"),
                    envelope_sender_of(e, &e->recipients[indexes[0]]));
    json_put(&w, TEXT(",\"to\":["));
    for (size_t i = 0; i < post->request.count; i++)
        json_put_string(
            &w, i > 0 ? TEXT(",") : TEXT(""),
            route_recipient(post->target, e->recipients[indexes[i]].address));
    json_put(&w, TEXT("],"));
    return !w.full;
}

/* An http_source's. */
static bool
poster_more(void *context, struct buffer *out)
{
    struct post *post = context;
    post->is_broken = !poster_body_next(&post->body, out) ||
                      (out->length == 0 && poster_body_is_over(&post->body));
    return !post->is_broken;
}

static struct outcome
poster_broken(void)
{
    return outcome_make(VERDICT_DEFERRED, BLAME_MESSAGE, 0, "4.3.0",
                        "cannot read the message");
}

static void
poster_unreadable(struct post *post)
{
    struct outcome why = poster_broken();
    poster_give_up(post, &why);
}

static bool
poster_fields(struct post *post, struct buffer *out, struct outcome *why)
{
    *why = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 0, "5.1.3",
                        "an address of the envelope cannot be in a field of HTTP");
    return poster_add_envelope(post, out) &&
           webhook_end(&post->webhook, post->id, post->now_s, out) &&
           poster_add_authorization(post, out, why);
}

static int64_t
poster_scaled_ms(const struct post *post, int64_t ms)
{
    return (int64_t)((double)ms * post->target->timeout_scale) + 1;
}

static void
poster_send(struct post *post)
{
    struct buffer fields;
    struct outcome why;
    struct http_source source = {poster_more, post};
    int64_t stall_ms = poster_scaled_ms(post, POSTER_STALL_MS);
    buffer_init(&fields, FIELDS_MAX);
    poster_body_rewind(&post->body);
    bool good = poster_fields(post, &fields, &why);
    struct http_request request = {.method = TEXT("POST"),
                                   .type = post->target->is_json
                                               ? TEXT("application/json")
                                               : TEXT("message/rfc822"),
                                   .fields = buffer_text(&fields),
                                   .more = post->octets};
    if (good)
        http_call_send(post->call, &request, &source,
                       2 * stall_ms + post->octets * 1000 / POSTER_BYTES_MIN, stall_ms);
    buffer_forget(&fields);
    if (!good)
        poster_give_up(post, &why);
}

/* A piece of the body is counted and goes into the signature in each turn. */
static void
poster_sign(void *context)
{
    struct post *post = context;
    struct poster *p = post->poster;
    struct id before = manager_enter(p->settings.manager, post->session);
    struct buffer piece;
    bool good = true, more = true;
    buffer_init(&piece, HTTP_PIECE);
    for (size_t done = 0; good && more && done < SIGN_BYTES; done += HTTP_PIECE) {
        buffer_clear(&piece);
        good = poster_body_next(&post->body, &piece);
        more = !poster_body_is_over(&post->body);
        post->octets += (int64_t)piece.length;
        webhook_add(&post->webhook, buffer_text(&piece));
    }
    buffer_free(&piece);
    if (!good)
        poster_unreadable(post);
    else if (more)
        loop_post(p->settings.loop, &post->task, poster_sign, post);
    else
        poster_send(post);
    manager_leave(p->settings.manager, before); /* it lives until the turn ends */
}

/* The time of the signature, too: a receiver refuses an old one. */
static void
poster_begin(struct post *post)
{
    struct poster *p = post->poster;
    struct webhook_key keys[WEBHOOK_SECRETS_MAX];
    struct text signer = target_signer(post->target);
    struct buffer secret;
    struct outcome why;
    size_t count = 0;
    post->is_broken = false;
    post->request_ms = loop_monotonic_ms(p->settings.loop);
    post->now_s = loop_now_ms(p->settings.loop) / 1000;
    poster_write_id(post);
    buffer_init(&post->envelope, FIELDS_MAX);
    if (!poster_add_members(post) ||
        !poster_body_open(&post->body, manager_queue(p->settings.manager),
                          post->request.envelope, buffer_text(&post->envelope))) {
        poster_unreadable(post);
        return;
    }
    buffer_init(&secret, SECRETS_PASSWORD_MAX);
    bool good = signer.length == 0 || poster_take_secret(post, signer, &secret, &why);
    if (good && signer.length > 0)
        count = webhook_keys(buffer_text(&secret), keys);
    buffer_forget(&secret);
    webhook_begin(&post->webhook, post->id, post->now_s, keys, count);
    digest_forget(keys, sizeof(keys));
    post->octets = count > 0 || post->target->is_json ? 0 : post->body.size;
    if (good && post->octets == 0)
        loop_post(p->settings.loop, &post->task, poster_sign, post);
    else if (good)
        poster_send(post);
    else
        poster_give_up(post, &why);
}

/* --- The connection ----------------------------------------------------------------- */

/* The connection is there: the session may have mail. */
static void
poster_on_ready(void *context)
{
    struct post *post = context;
    struct manager *m = post->poster->settings.manager;
    struct id before = manager_enter(m, post->session);
    struct session_limits limits = {.recipients = POSTER_RECIPIENTS_MAX};
    post->timing.connect_ms =
        loop_monotonic_ms(post->poster->settings.loop) - post->opened_ms;
    sched_session_limit(post->session, &limits);
    post->in_request = manager_take(m, post->session, &post->request);
    if (post->in_request)
        poster_begin(post);
    else
        poster_end(post, &outcome_no_trouble);
    manager_leave(m, before); /* it lives until the turn ends */
}

static void
poster_connect(struct post *post)
{
    struct poster *p = post->poster;
    const struct target *t = post->target;
    char url[TARGET_URL_MAX];
    bool clear = !t->tls_implicit;
    struct http_request request = {.method = TEXT("POST")};
    struct http_call_options options = {
        .body_max = POSTER_ANSWER_MAX,
        .deadline_ms = poster_scaled_ms(post, POSTER_CONNECT_MS),
        .cleartext = clear,
        .is_private = clear,
        .is_public = !clear && !t->is_private && !http_url_is_private(t->host),
        .on_ready = p->on_ready};
    target_url(t, url);
    post->opened_ms = loop_monotonic_ms(p->settings.loop);
    post->call = http_call_start(p->settings.http, text_from(url), &request, &options,
                                 p->on_called, post);
}

/* A response, or none. After a refusal for the application's own reasons the scheduler
 * decides when another session comes. */
static void
poster_on_called(void *context, const struct http_result *result)
{
    struct post *post = context;
    struct poster *p = post->poster;
    struct manager *m = p->settings.manager;
    struct id before = manager_enter(m, post->session);
    struct outcome outcome =
        post->is_broken
            ? poster_broken()
            : poster_reply_judge(post->target, result, loop_now_ms(p->settings.loop));
    bool had_mail = post->in_request;
    post->call = NULL;
    if (had_mail)
        poster_settle(post, &outcome);
    if (outcome.verdict == VERDICT_DEFERRED &&
        (outcome.blame == BLAME_SITE || !had_mail))
        poster_end(post, &outcome);
    else if (had_mail && manager_has_work(m, post->session))
        poster_connect(post);
    else
        poster_end(post, &outcome_no_trouble);
    manager_leave(m, before); /* it lives until the turn ends */
}

/* --- Questions ---------------------------------------------------------------------- */

static void
poster_watch(void *context, const struct sched_site *site, struct id message,
             manager_saw *each, void *each_context)
{
    const struct poster *p = context;
    const struct post *post;
    int64_t gap_ms =
        loop_now_ms(p->settings.loop) - loop_monotonic_ms(p->settings.loop);
    DL_FOREACH (p->posts, post) {
        struct activity a = {.kind = ACTIVITY_CONNECT,
                             .since_ms = post->opened_ms + gap_ms};
        if (!sched_session_is_at(post->session, site))
            continue;
        if (post->in_request) {
            a.kind =
                http_call_is_sending(post->call) ? ACTIVITY_CONTENT : ACTIVITY_REPLY;
            a.since_ms = post->request_ms + gap_ms;
            a.has_message = id_compare(post->request.envelope->id, message) == 0;
        }
        if (a.kind == ACTIVITY_REPLY)
            snprintf(a.what, sizeof(a.what), "POST");
        snprintf(a.remote, sizeof(a.remote), "%s:%u", post->target->host,
                 (unsigned)post->target->port);
        each(each_context, &a);
    }
}

/* --- Public ------------------------------------------------------------------------- */

struct poster *
poster_new(const struct poster_settings *settings)
{
    struct poster *p = memory_new(sizeof(*p));
    p->settings = *settings;
    p->on_called = poster_on_called;
    p->on_ready = poster_on_ready;
    manager_set_watch(settings->manager, poster_watch, p);
    return p;
}

void
poster_use(struct poster *p, const struct secrets *secrets)
{
    p->secrets = secrets;
}

void
poster_drain(struct poster *p)
{
    struct post *post, *next;
    DL_FOREACH_SAFE (p->posts, post, next)
        if (!post->in_request)
            poster_stop(post);
}

void
poster_cut(struct poster *p)
{
    while (p->posts != NULL)
        poster_stop(p->posts);
}

void
poster_free(struct poster **poster)
{
    struct poster *p = *poster;
    if (p == NULL)
        return;
    *poster = NULL;
    poster_cut(p);
    manager_set_watch(p->settings.manager, NULL, p);
    free(p);
}

void
poster_open(void *context, struct sched_session *session, const struct target *target,
            const char *domain)
{
    struct poster *p = context;
    struct post *post = memory_new(sizeof(*post));
    assert(target->kind == TARGET_HTTP);
    (void)domain;
    post->poster = p;
    post->session = session;
    post->target = target;
    post->body.content = -1;
    DL_APPEND(p->posts, post);
    poster_connect(post);
}
