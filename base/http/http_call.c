/* One call after the other goes through its stages: looked up, connected, secured,
 * sent, read. Each stage ends in the next one, or in http_call_fail(). */
#include "base/http/http_call.h"

#include "base/dns/dns.h"
#include "base/loop/loop.h"
#include "base/memory.h"
#include "base/net/net.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <utlist.h>

/* A request: its head, and a body as large as a response's. */
enum { HTTP_REQUEST_MAX = HTTP_BODY_MAX + 2 * HTTP_HEAD_MAX };
enum { NETWORK_BYTES_IPV4 = 3, NETWORK_BYTES_IPV6 = 6 }; /* of one owner */

struct http_line {
    struct http_call *calls;
    size_t count;
};

struct http_caller {
    struct http_caller_settings settings;
    struct http_line running, waiting,
        refused; /* refused: will hear in the next turn */
    void (*admit)(struct http_caller *caller);
    net_happened *on_net;
    void (*on_slow)(void *call);
};

struct http_call {
    struct http_caller *caller;
    struct http_call *prev, *next;
    struct http_line *line; /* of struct http_caller */
    char *url_text;         /* url.path points into it */
    struct http_url url;
    struct buffer request;
    struct http_reader reader;
    int64_t deadline_ms;
    void (*on_ready)(void *context);
    struct http_source source;
    int64_t left; /* octets of the source */
    int64_t stall_ms, until_ms;
    bool is_public, is_private;
    struct dns_query *query;
    struct net_address addresses[HTTP_ADDRESSES_MAX];
    size_t count, at;
    struct net_connection *connection;
    struct loop_timer deadline, connecting;
    struct loop_task failing, pumping;
    bool connected, refused;
    bool failed_early; /* before the whole request was sent */
    char error[HTTP_ERROR_MAX];
    http_called *done; /* NULL: cancelled or answered */
    void *context;
};

static void
http_call_release(void *object)
{
    struct http_call *call = object;
    free(call->url_text);
    buffer_forget(&call->request); /* they may hold a token */
    buffer_forget(&call->reader.body);
    http_reader_free(&call->reader);
    free(call);
}

static void
http_call_enter(struct http_call *call, struct http_line *line)
{
    call->line = line;
    DL_APPEND(line->calls, call);
    line->count++;
}

static void
http_call_leave(struct http_call *call)
{
    DL_DELETE(call->line->calls, call);
    call->line->count--;
}

/* ---- the end ---- */

static void
http_call_disarm(struct http_call *call)
{
    struct loop *loop = call->caller->settings.loop;
    dns_cancel(&call->query);
    net_abort(&call->connection);
    loop_timer_stop(loop, &call->deadline);
    loop_timer_stop(loop, &call->connecting);
    loop_unpost(loop, &call->failing);
    loop_unpost(loop, &call->pumping);
}

/* Without a callback. */
static void
http_call_stop(struct http_call *call)
{
    struct http_caller *caller = call->caller;
    assert(call->done != NULL);
    call->done = NULL;
    http_call_disarm(call);
    http_call_leave(call);
    loop_release(caller->settings.loop, http_call_release, call);
}

/* Last in its function: the callback may free the caller. */
static void
http_call_finish(struct http_call *call, const struct http_result *result)
{
    http_called *done = call->done;
    http_call_stop(call);
    call->caller->admit(call->caller);
    done(call->context, result);
}

static const struct net_address *
http_call_peer(const struct http_call *call)
{
    return call->at > 0 ? &call->addresses[call->at - 1] : NULL;
}

static bool
http_call_is_early(const struct http_call *call)
{
    return call->left > 0 || call->on_ready != NULL;
}

static void
http_call_failed(void *context)
{
    struct http_call *call = context;
    const struct http_reader *head = call->reader.has_head ? &call->reader : NULL;
    http_call_finish(call, &(struct http_result){.error = call->error,
                                                 .head = head,
                                                 .tried = call->at > 0,
                                                 .connected = call->connected,
                                                 .refused = call->refused,
                                                 .is_early = call->failed_early,
                                                 .peer = http_call_peer(call)});
}

/* The callback comes in a later turn in any case. */
static void __attribute__((format(printf, 2, 3)))
http_call_fail(struct http_call *call, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(call->error, sizeof(call->error), format, list);
    va_end(list);
    call->failed_early = http_call_is_early(call); /* the owner may send yet, in vain */
    http_call_disarm(call);
    loop_post(call->caller->settings.loop, &call->failing, http_call_failed, call);
}

/* There is no space left in line. */
static void
http_call_refuse(struct http_call *call)
{
    call->refused = true;
    http_call_fail(call, "too many HTTPS calls wait");
}

static void
http_call_on_deadline(void *context)
{
    struct http_call *call = context;
    call->refused = call->query != NULL && dns_is_in_line(call->query);
    http_call_fail(
        call, "%s: no complete response in %lld s", call->url.host,
        (long long)((call->stall_ms > 0 ? call->stall_ms : call->deadline_ms) / 1000));
}

/* With a time to send: another stall_ms, but not beyond the whole. */
static void
http_call_progress(struct http_call *call)
{
    struct loop *loop = call->caller->settings.loop;
    int64_t left = call->until_ms - loop_monotonic_ms(loop);
    if (call->stall_ms == 0)
        return;
    loop_timer_start(loop, &call->deadline,
                     left < call->stall_ms ? left : call->stall_ms,
                     http_call_on_deadline, call);
}

/* ---- the response ---- */

static void
http_call_settle(struct http_call *call, enum progress progress)
{
    if (progress == PROGRESS_BAD)
        http_call_fail(call, "%s: %s", call->url.host, call->reader.error);
    if (progress != PROGRESS_DONE)
        return;
    if (call->left > 0)
        net_abort(&call->connection); /* it wants no more of the body */
    else
        net_close(&call->connection); /* with our close_notify */
    http_call_finish(call, &(struct http_result){.response = &call->reader,
                                                 .head = &call->reader,
                                                 .tried = true,
                                                 .connected = true,
                                                 .is_early = http_call_is_early(call),
                                                 .peer = http_call_peer(call)});
}

static void
http_call_read(struct http_call *call)
{
    struct text input = net_input(call->connection);
    size_t before = input.length;
    enum progress progress = http_reader_add(&call->reader, &input);
    net_consume(call->connection, before - input.length);
    http_call_progress(call);
    http_call_settle(call, progress);
}

/* ---- the connection ---- */

/* The next address, or, when there is none, why the last one failed. */
static void
http_call_connect(struct http_call *call, const char *why)
{
    const struct http_caller *caller = call->caller;
    loop_timer_stop(caller->settings.loop, &call->connecting);
    net_abort(&call->connection);
    if (call->at == call->count) {
        http_call_fail(call, "%s: %s", call->url.host, why);
        return;
    }
    call->connection = net_connect(caller->settings.net, &call->addresses[call->at++],
                                   NULL, caller->on_net, call);
    loop_timer_start(caller->settings.loop, &call->connecting, HTTP_CONNECT_MS,
                     caller->on_slow, call);
}

static void
http_call_on_slow(void *context)
{
    struct http_call *call = context;
    char address[NET_ADDRESS_TEXT_MAX], why[200];
    net_address_format(net_peer(call->connection), address);
    snprintf(why, sizeof(why), "cannot connect to %s: no answer in %d s", address,
             HTTP_CONNECT_MS / 1000);
    http_call_connect(call, why);
}

static void
http_call_begin_request(struct http_call *call)
{
    if (call->on_ready != NULL) {
        call->on_ready(call->context);
        return;
    }
    net_send(call->connection, buffer_text(&call->request));
    buffer_forget(&call->request);
}

static void http_call_pump(struct http_call *call);

static void
http_call_go_on(void *context)
{
    http_call_pump(context);
}

/* As much as the connection takes now, and the source has. */
static void
http_call_pump(struct http_call *call)
{
    struct buffer piece;
    buffer_init(&piece, HTTP_PIECE);
    while (call->left > 0 && net_unsent(call->connection) < NET_HIGH_WATER) {
        bool good = call->source.more(call->source.context, &piece);
        if (!good || (int64_t)piece.length > call->left) {
            http_call_fail(call, "the body of the request cannot be read");
            break;
        }
        if (piece.length == 0) {
            loop_post(call->caller->settings.loop, &call->pumping, http_call_go_on,
                      call);
            break;
        }
        call->left -= (int64_t)piece.length;
        net_send(call->connection, buffer_text(&piece));
        buffer_clear(&piece);
    }
    buffer_free(&piece);
}

void
http_call_send(struct http_call *call, const struct http_request *request,
               const struct http_source *source, int64_t deadline_ms, int64_t stall_ms)
{
    int64_t now = loop_monotonic_ms(call->caller->settings.loop);
    call->on_ready = NULL;
    if (call->connection == NULL)
        return; /* it has failed since, which its owner will hear */
    call->source = *source;
    call->left = request->more;
    call->deadline_ms = deadline_ms;
    call->stall_ms = stall_ms;
    call->until_ms = now + deadline_ms;
    buffer_clear(&call->request);
    if (!http_request_write(&call->request, &call->url, request)) {
        http_call_fail(call, "the request is too large");
        return;
    }
    http_call_progress(call);
    http_call_begin_request(call);
    http_call_pump(call);
}

static void
http_call_connected(struct http_call *call)
{
    struct tls_client *client = *call->caller->settings.tls;
    struct net_tls tls = {
        .client = client,
        .options = {.level = TLS_LEVEL_VERIFY, .host = text_from(call->url.host)}
    };
    call->connected = true;
    loop_timer_stop(call->caller->settings.loop, &call->connecting);
    if (!call->url.secure)
        http_call_begin_request(call);
    else if (client == NULL)
        http_call_fail(call, "%s: there are no trust anchors to verify its certificate",
                       call->url.host);
    else
        net_start_tls(call->connection, &tls);
}

static void
http_call_on_net(void *context, enum net_event event)
{
    struct http_call *call = context;
    char why[HTTP_ERROR_MAX];
    switch (event) {
    case NET_CONNECTED:
        http_call_connected(call);
        break;
    case NET_SECURED:
        http_call_begin_request(call);
        break;
    case NET_INPUT:
        http_call_read(call);
        break;
    case NET_ENDED:
        http_call_settle(call, http_reader_end(&call->reader));
        break;
    case NET_FAILED:
        snprintf(why, sizeof(why), "%s", net_error(call->connection));
        if (call->connected)
            http_call_fail(call, "%s: %s", call->url.host, why);
        else
            http_call_connect(call, why);
        break;
    case NET_DRAINED:
        http_call_progress(call);
        http_call_pump(call);
        break;
    case NET_TIMED_OUT: /* deadlines are our own timers */
        break;
    }
}

static bool
http_call_shares_network(const struct net_address *a, const struct net_address *b)
{
    size_t length = a->family == NET_IPV4 ? NETWORK_BYTES_IPV4 : NETWORK_BYTES_IPV6;
    return a->family == b->family && memcmp(a->ip, b->ip, length) == 0;
}

/* Anyone can name hosts that hang; an owner of networks is not so easily many. */
static bool
http_call_may_connect(const struct http_call *call)
{
    const struct http_caller *caller = call->caller;
    const struct http_call *other;
    size_t count = 0, max = caller->settings.network_calls_max;
    if (max == 0 || call->count == 0)
        return true;
    DL_FOREACH (caller->running.calls, other)
        count +=
            other->at > 0 && http_call_shares_network(&other->addresses[other->at - 1],
                                                      &call->addresses[0]);
    return count < max;
}

/* Back into the line, since others of its network are under way. */
static void
http_call_step_back(struct http_call *call)
{
    struct http_caller *caller = call->caller;
    if (caller->waiting.count >= HTTP_WAITING_MAX) {
        http_call_refuse(call);
        return;
    }
    loop_timer_stop(caller->settings.loop, &call->deadline);
    http_call_leave(call);
    http_call_enter(call, &caller->waiting);
    caller->admit(caller);
}

static void
http_call_on_addresses(void *context, const struct dns_answer *answer)
{
    struct http_call *call = context;
    call->query = NULL;
    if (answer->status != DNS_FOUND) {
        call->refused = answer->unasked;
        http_call_fail(call, "%s", answer->reason);
        return;
    }
    for (size_t i = 0; i < answer->count && call->count < HTTP_ADDRESSES_MAX; i++) {
        const struct net_address *a = &answer->addresses[i];
        if (net_address_is_public(a) ? call->is_private : call->is_public)
            continue;
        call->addresses[call->count] = *a;
        call->addresses[call->count++].port = call->url.port;
    }
    if (!http_call_may_connect(call)) {
        http_call_step_back(call);
        return;
    }
    http_call_connect(call, call->is_public    ? "it has no public address"
                            : call->is_private ? "it has no private address"
                                               : "it has no address");
}

/* ---- the line ---- */

static void
http_call_begin(struct http_call *call)
{
    struct http_caller *caller = call->caller;
    http_call_enter(call, &caller->running);
    loop_timer_start(caller->settings.loop, &call->deadline, call->deadline_ms,
                     http_call_on_deadline, call);
    if (call->count > 0) { /* known from before */
        http_call_connect(call, "");
        return;
    }
    call->query = dns_find_addresses(caller->settings.dns, call->url.host,
                                     http_call_on_addresses, call);
}

/* A host that does not answer stalls its own calls. */
static bool
http_call_may_begin(const struct http_call *call)
{
    const struct http_caller *caller = call->caller;
    const struct http_line *running = &caller->running;
    const struct http_call *other;
    size_t count = 0;
    if (running->count >= caller->settings.calls_max || !http_call_may_connect(call))
        return false;
    DL_FOREACH (running->calls, other)
        count += strcmp(other->url.host, call->url.host) == 0;
    return count < caller->settings.host_calls_max;
}

static void
http_caller_admit(struct http_caller *caller)
{
    struct http_call *call, *next;
    DL_FOREACH_SAFE (caller->waiting.calls, call, next) {
        if (caller->running.count >= caller->settings.calls_max)
            return;
        if (!http_call_may_begin(call))
            continue;
        http_call_leave(call);
        http_call_begin(call);
    }
}

/* ---- public ---- */

struct http_caller *
http_caller_new(const struct http_caller_settings *settings)
{
    struct http_caller *caller = memory_new(sizeof(*caller));
    caller->settings = *settings;
    if (settings->calls_max == 0)
        caller->settings.calls_max = HTTP_CALLS_MAX;
    if (settings->host_calls_max == 0)
        caller->settings.host_calls_max = HTTP_HOST_CALLS_MAX;
    caller->admit = http_caller_admit;
    caller->on_net = http_call_on_net;
    caller->on_slow = http_call_on_slow;
    return caller;
}

void
http_caller_free(struct http_caller **caller)
{
    struct http_caller *c = *caller;
    *caller = NULL;
    if (c == NULL)
        return;
    struct http_line *lines[] = {&c->refused, &c->waiting, &c->running};
    for (size_t i = 0; i < 3; i++)
        while (lines[i]->calls != NULL)
            http_call_stop(lines[i]->calls);
    loop_release(c->settings.loop, free, c);
}

/* False with the reason posted. */
static bool
http_call_prepare(struct http_call *call, const struct http_request *request,
                  bool cleartext)
{
    const char *why = "the request is too large";
    if (!http_url_parse(text_from(call->url_text), &call->url, &why) ||
        !http_request_write(&call->request, &call->url, request))
        http_call_fail(call, "%s", why);
    else if (!call->url.secure && !cleartext)
        http_call_fail(call, "%s: http:// is not permitted here, only https://",
                       call->url.host);
    else
        return true;
    return false;
}

/* A network that is slow must not fill the line: the last call in it that has stepped back
 * leaves it for a call whose network is not known yet. */
static void
http_caller_make_space(struct http_caller *caller)
{
    struct http_call *first = caller->waiting.calls, *call = first;
    if (caller->waiting.count < HTTP_WAITING_MAX)
        return;
    do
        call = call->prev; /* of the first: the last */
    while (call->count == 0 && call != first);
    if (call->count == 0)
        return;
    http_call_leave(call);
    http_call_enter(call, &caller->refused);
    http_call_refuse(call);
}

static void
http_call_wait(struct http_call *call)
{
    struct http_caller *caller = call->caller;
    http_caller_make_space(caller);
    bool full = caller->waiting.count >= HTTP_WAITING_MAX;
    if (full)
        http_call_refuse(call);
    http_call_enter(call, full ? &caller->refused : &caller->waiting);
}

struct http_call *
http_call_start(struct http_caller *caller, struct text url,
                const struct http_request *request,
                const struct http_call_options *options, http_called *done,
                void *context)
{
    struct http_call *call = memory_new(sizeof(*call));
    struct http_limits limits = {HTTP_LINES_MAX, HTTP_HEAD_MAX,
                                 options->body_max > 0 ? options->body_max
                                                       : HTTP_BODY_MAX};
    assert(done != NULL);
    call->caller = caller;
    call->done = done;
    call->context = context;
    call->is_public = options->is_public;
    call->is_private = options->is_private;
    call->on_ready = options->on_ready;
    call->deadline_ms =
        options->deadline_ms > 0 ? options->deadline_ms : HTTP_DEADLINE_MS;
    call->url_text = text_string(text_before(url, HTTP_URL_MAX + 1));
    buffer_init(&call->request, HTTP_REQUEST_MAX);
    http_reader_init(&call->reader, HTTP_RESPONSE, &limits);
    call->reader.expects_no_body = text_equal(request->method, TEXT("HEAD"));
    if (!http_call_prepare(call, request, options->cleartext))
        http_call_enter(call, &caller->refused);
    else if (http_call_may_begin(call)) /* those that wait may not */
        http_call_begin(call);
    else
        http_call_wait(call);
    return call;
}

void
http_call_cancel(struct http_call **call)
{
    struct http_call *c = *call;
    *call = NULL;
    if (c == NULL || c->done == NULL)
        return;
    struct http_caller *caller = c->caller;
    http_call_stop(c);
    http_caller_admit(caller);
}

bool
http_call_is_in_line(const struct http_call *call)
{
    return call->line == &call->caller->waiting ||
           (call->query != NULL && dns_is_in_line(call->query));
}

bool
http_call_is_sending(const struct http_call *call)
{
    return call->left > 0;
}
