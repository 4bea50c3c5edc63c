/* Writes the trace header of an accepted message. */
#include "smtp/server/trace.h"

#include "mime/address.h"
#include "mime/date.h"

#include <assert.h>
#include <string.h>

enum { COLUMNS_MAX = 77, HELO_SHOWN_MAX = 255, WORD_MAX = 600 };

struct folder {
    struct buffer *out;
    size_t column;
};

static void
trace_add(struct folder *f, struct text t)
{
    bool added = buffer_add(f->out, t);
    assert(added);
    f->column += t.length;
}

/* Adds an unbreakable word, on a new line if it does not fit. A line may have 998 bytes
 * (RFC 5322 §2.1.1); shorter ones survive hosts that count otherwise. */
static void
add_word(struct folder *f, struct text word)
{
    bool fits = f->column + 1 + word.length <= COLUMNS_MAX;
    if (!fits) {
        trace_add(f, TEXT("\r\n"));
        f->column = 0;
    }
    trace_add(f, fits ? TEXT(" ") : TEXT("\t"));
    trace_add(f, word);
}

static void
add_quoted_word(struct folder *f, const char *before, struct text word,
                const char *after)
{
    char whole[WORD_MAX];
    struct text parts[] = {text_from(before), word, text_from(after)};
    size_t length = 0;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        assert(parts[i].length <= sizeof(whole) - length);
        if (parts[i].length > 0)
            memcpy(whole + length, parts[i].at, parts[i].length);
        length += parts[i].length;
    }
    add_word(f, text_of(whole, length));
}

/* Domains and literals are copied. In other names the bytes are replaced that could end
 * the line, open a comment or imitate another clause. */
static void
add_helo(struct folder *f, struct text helo)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                "0123456789.-_[]:";
    char shown[HELO_SHOWN_MAX];
    helo = text_before(helo, sizeof(shown));
    for (size_t i = 0; i < helo.length; i++)
        shown[i] = text_find(TEXT(plain), helo.at[i]) == TEXT_NONE ? '?' : helo.at[i];
    add_word(f, helo.length == 0 ? TEXT("unknown") : text_of(shown, helo.length));
}

static void
add_short_received(struct folder *f, const struct trace *trace, struct text date)
{
    trace_add(f, TEXT("Received: by"));
    add_quoted_word(f, "", text_from(trace->hostname), " (Petrel)");
    add_quoted_word(f, "with ", text_from(trace->protocol), "");
    add_quoted_word(f, "id ", text_from(trace->id), ";");
    add_word(f, date);
    trace_add(f, TEXT("\r\n"));
}

static void
add_received(struct folder *f, const struct trace *trace, struct text date)
{
    trace_add(f, TEXT("Received: from"));
    add_helo(f, text_from(trace->helo));
    add_quoted_word(f, "(", text_from(trace->client), ")");
    add_quoted_word(f, "by ", text_from(trace->hostname), " (Petrel)");
    add_quoted_word(f, "with ", text_from(trace->protocol), "");
    if (trace->security != NULL && trace->security[0] != '\0')
        add_quoted_word(f, "(using ", text_from(trace->security), ")");
    bool told = trace->recipient.length > 0, ranked = trace->priority.length > 0;
    add_quoted_word(f, "id ", text_from(trace->id), told || ranked ? "" : ";");
    if (told)
        add_quoted_word(f, "for <", trace->recipient, ranked ? ">" : ">;");
    if (ranked)
        add_quoted_word(f, "PRIORITY ", trace->priority, ";");
    add_word(f, date);
    trace_add(f, TEXT("\r\n"));
}

static void
add_date_field(struct folder *f, const char *name, const char *date)
{
    trace_add(f, text_from(name));
    trace_add(f, text_from(date));
    trace_add(f, TEXT("\r\n"));
}

static void
add_id_field(struct folder *f, const char *name, const struct trace *trace,
             const char *kind)
{
    trace_add(f, text_from(name));
    trace_add(f, text_from(trace->id));
    trace_add(f, text_from(kind));
    trace_add(f, text_from(trace->hostname));
    trace_add(f, TEXT(">\r\n"));
}

/* The end and the mailbox line repair headers that readers behind us would end at
 * another place than we did. */
void
trace_write(const struct trace *trace, struct buffer *out)
{
    struct folder f = {.out = out};
    char date[DATE_TEXT_MAX];
    date_format(trace->now_ms, date);
    if (trace->form == SERVER_RECEIVED_FULL)
        add_received(&f, trace, text_from(date));
    else if (trace->form == SERVER_RECEIVED_SHORT)
        add_short_received(&f, trace, text_from(date));
    if (trace->add_date)
        add_date_field(&f, "Date: ", date);
    if (trace->add_message_id)
        add_id_field(&f, "Message-ID: <", trace, "@");
    /* Last, beside the other Resent- fields, and with an id of their own. */
    if (trace->add_resent_date)
        add_date_field(&f, "Resent-Date: ", date);
    if (trace->add_resent_message_id)
        add_id_field(&f, "Resent-Message-ID: <", trace, ".resent@");
    if (trace->add_end)
        trace_add(&f, TEXT("\r\n"));
    else if (trace->add_mailbox_line)
        trace_add(&f, TEXT("Mailbox-Line: "));
}

/* --- The origin ------------------------------------------------------------------- */

/* The network of one customer, or a little more. */
static bool
write_network(const struct net_address *a, struct buffer *out)
{
    const unsigned char *ip = a->ip;
    switch (a->family) {
    case NET_PASSED:
    case NET_NONE:
    case NET_UNIX:
        break;
    case NET_IPV4:
        return buffer_format(out, "%u.%u.%u.0/24", ip[0], ip[1], ip[2]);
    case NET_IPV6:
        return buffer_format(out, "%x:%x:%x:%x::/64", ip[0] << 8 | ip[1],
                             ip[2] << 8 | ip[3], ip[4] << 8 | ip[5],
                             ip[6] << 8 | ip[7]);
    }
    return true;
}

bool
trace_write_origin(const struct server *s, struct buffer *out)
{
    struct net_address client = {.family = NET_NONE};
    const char *trust = server_may_relay(s) ? "int" : "ext";
    bool known = address_read_literal(text_from(s->client), &client);
    net_address_unmap(&client);
    return (s->user == NULL ? buffer_format(out, "%s net:", trust)
                            : buffer_format(out, "auth:%s net:", s->user)) &&
           (!known || write_network(&client, out));
}
