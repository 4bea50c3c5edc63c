/* The header lines that the server adds to a message: Received, Date, Message-ID
 * (RFC 5321 §4.4, RFC 6409 §8), Resent-Date, Resent-Message-ID; and its note of the
 * origin. Pure. */
#ifndef SMTP_SERVER_TRACE_H
#define SMTP_SERVER_TRACE_H

#include "base/buffer.h"
#include "smtp/server/server.h"

struct trace {
    enum server_received form;
    const char *helo;     /* as received; trace.c escapes it */
    const char *client;   /* "[192.0.2.1]", "[IPv6:2001:db8::1]", "unix", "local" */
    const char *hostname; /* ours */
    const char *protocol; /* "ESMTP", "SMTP", "LMTP", "UTF8SMTP", ... */
    const char *security; /* "TLSv1.3 with cipher ..."; NULL or empty: omitted */
    const char *id;
    struct text recipient; /* normal form; empty: omitted */
    struct text priority;  /* MT-PRIORITY (RFC 6710); empty: omitted */
    int64_t now_ms;
    bool add_date, add_message_id;
    bool add_resent_date, add_resent_message_id; /* RFC 5322 §3.6.6 */
    bool add_end; /* an empty line: the message has no header, only a body */
    /* "Mailbox-Line: " at the very end: the message begins with a line "From ..." */
    bool add_mailbox_line;
};

/* CRLF line ends, folded below 78 columns where words allow it; at most TRACE_MAX
 * bytes. */
enum { TRACE_MAX = 4096 };
void trace_write(const struct trace *trace, struct buffer *out);

/* The origin of a message, kept in its envelope (envelope.trust): only fragments of
 * one origin are reassembled. Appends "auth:USER", "int" or "ext", then " net:" and
 * the network of the client: 192.0.2.0/24, 2001:db8:0:1::/64, or nothing without an
 * address. False: out is too small. */
bool trace_write_origin(const struct server *s, struct buffer *out)
    __attribute__((warn_unused_result));

#endif
