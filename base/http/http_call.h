/* HTTPS calls: one request, one response, on the loop.
 *
 * A call resolves the URL's host, connects to up to HTTP_ADDRESSES_MAX of its addresses
 * in turn, verifies the certificate for that host against the trust anchors (SNI is
 * sent), sends the request, reads the response and closes. At most HTTP_CALLS_MAX are
 * under way, half of them to one host, the others wait in line. A user that fetches
 * from untrusted hosts has a caller of its own, with a limit for each network. No
 * redirects, cookies, proxies or compression; nothing is tried again: that is for the
 * caller to decide. */
#ifndef BASE_HTTP_HTTP_CALL_H
#define BASE_HTTP_HTTP_CALL_H

#include "base/http/http.h"

struct dns;
struct loop;
struct net;
struct tls_client;
struct http_caller;
struct http_call;

enum {
    HTTP_CALLS_MAX = 16,      /* under way, unless the settings say another number */
    HTTP_HOST_CALLS_MAX = 8,  /* of them, to one host */
    HTTP_WAITING_MAX = 2048,  /* in line; beyond it a call fails */
    HTTP_ADDRESSES_MAX = 4,   /* of a host */
    HTTP_CONNECT_MS = 5000,   /* for one address */
    HTTP_DEADLINE_MS = 30000, /* for a call, from its turn on */
    HTTP_PIECE = 16 * 1024,   /* of a streamed body */
    HTTP_ERROR_MAX = 700
};

struct http_caller_settings {
    struct loop *loop;
    struct net *net;
    struct dns *dns;
    /* Its trust anchors; read when TLS starts, so that a reload may replace it. *tls
     * may be NULL: https:// fails then. */
    struct tls_client *const *tls;
    size_t calls_max;      /* under way; 0: HTTP_CALLS_MAX */
    size_t host_calls_max; /* of them, to one host; 0: HTTP_HOST_CALLS_MAX */
    /* Calls that are connected to one network: an IPv4 /24 or an IPv6 /48. 0: no limit.
     */
    size_t network_calls_max;
};
struct http_caller *http_caller_new(const struct http_caller_settings *settings);
/* Cancels all calls. */
void http_caller_free(struct http_caller **caller);

struct http_call_options {
    size_t body_max;     /* 0: HTTP_BODY_MAX */
    int64_t deadline_ms; /* 0: HTTP_DEADLINE_MS */
    bool cleartext;      /* http:// is permitted */
    bool is_private;     /* only addresses of our own networks, by name, too: for
                      * cleartext */
    bool is_public; /* the URL is of an untrusted origin: it must not lead into our own
                          * networks (net_address_is_public()) */
    /* Called in place of sending request once the connection is there, secured: the
     * owner answers with http_call_send(), then or later. */
    void (*on_ready)(void *context);
};
struct http_result {
    const char *error;                  /* NULL: the response is complete */
    const struct http_reader *response; /* borrowed; NULL with an error */
    /* response; or behind an error a response whose head was complete: its status and
     * fields are known then, its body is not. */
    const struct http_reader *head;
    bool tried, connected; /* by TCP; also if TLS or HTTP failed */
    /* There was no space for the call, here or among the questions to name servers:
     * nothing is known of the host. */
    bool refused;
    bool is_early; /* the response came before the whole request was sent */
    const struct net_address *peer; /* that was connected to last; NULL: none was */
};
typedef void http_called(void *context, const struct http_result *result);

/* Copies its arguments. The callback comes once, in a later turn; then the call is
 * void. A malformed URL is an error like others. */
struct http_call *http_call_start(struct http_caller *caller, struct text url,
                                  const struct http_request *request,
                                  const struct http_call_options *options,
                                  http_called *done, void *context);
/* A body that is not in memory: more() adds some bytes of it to out, which has room for
 * HTTP_PIECE; none: it is asked again in the next turn. False: it cannot be read, and the
 * call fails. */
struct http_source {
    bool (*more)(void *context, struct buffer *out);
    void *context;
};
/* Answers on_ready, once. source: of request->more octets; copied; its context lives as long
 * as the call. deadline_ms: from now on; stall_ms: while nothing is sent or read. */
void http_call_send(struct http_call *call, const struct http_request *request,
                    const struct http_source *source, int64_t deadline_ms,
                    int64_t stall_ms);
/* Some of the body of the request is not sent yet. */
bool http_call_is_sending(const struct http_call *call);
/* The callback will not come. Allowed, without effect, within the callback. */
void http_call_cancel(struct http_call **call);
/* Whether the call waits in line: here, where its deadline has not begun, or among the
 * questions to name servers. */
bool http_call_is_in_line(const struct http_call *call);

#endif
