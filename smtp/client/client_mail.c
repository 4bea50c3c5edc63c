/* Chooses the form of a message for a host, and writes the MAIL and RCPT commands with
 * their parameters (RFC 1870, 3030, 3461, 6152, 6531, 6710). */
#include "smtp/client/client_internal.h"

#include "mime/address.h"
#include "smtp/redirect.h"

#include <assert.h>
#include <inttypes.h>

enum {
    ADDRESS_BYTES_MAX = 1024, /* far above RFC 5321 */
    LIMIT_DIGITS_MAX = 6
};

/* --- The form --------------------------------------------------------------------- */

/* A line end in an address would begin a command of its own. */
bool
client_is_sendable(struct text address)
{
    return address.length <= ADDRESS_BYTES_MAX && !text_has_control(address);
}

/* A message that came with SMTPUTF8 need not need it: if its header and all addresses
 * are ASCII it goes to hosts without the extension, too. */
static bool
client_mail_needs_utf8(const struct client_mail *mail)
{
    const struct envelope *e = mail->envelope;
    bool ascii = !outgoing_has_utf8_header(mail->outgoing, e) &&
                 text_is_ascii(outgoing_sender(mail->outgoing, e));
    for (size_t i = 0; ascii && i < mail->count; i++)
        ascii = text_is_ascii(e->recipients[mail->indexes[i]].address);
    return !ascii;
}

static bool
client_mail_has(const struct client *c, unsigned extensions)
{
    return (c->extensions & extensions) == extensions;
}

static bool
takes_binary(const struct client *c)
{
    return client_mail_has(c, EXTENSION_CHUNKING | EXTENSION_BINARYMIME);
}

static const char *
too_large(const struct client *c, const struct client_transaction *l)
{
    return c->size_max > 0 && l->size > c->size_max
               ? "message is larger than the host accepts (SIZE)"
               : NULL;
}

/* Mail that cannot go to this host in any form is found first. 8-bit content without
 * 8BITMIME and binary content without BINARYMIME must be scanned before MAIL
 * (CLIENT_PREPARE), since MAIL has BODY and SIZE of the form that is sent. */
const char *
client_choose_form(const struct client *c, struct client_transaction *l,
                   const char **enhanced)
{
    const struct envelope *e = l->mail.envelope;
    l->preparing = l->prepare_due = l->converting = false;
    l->added = 0;
    l->size = (uint64_t)outgoing_size(l->mail.outgoing, e);
    l->utf8 = client_mail_has(c, EXTENSION_SMTPUTF8) &&
              (e->utf8 || client_mail_needs_utf8(&l->mail));
    bool is_redirect = c->settings.redirect_to != NULL;
    const char *trouble =
        is_redirect
            ? redirect_trouble(e, client_mail_has(c, EXTENSION_XDEFRAG), enhanced)
            : NULL;
    if (trouble != NULL)
        return trouble;
    *enhanced = "5.3.4";
    if (too_large(c, l) != NULL)
        return too_large(c, l);
    *enhanced = "5.6.7";
    if (!client_mail_has(c, EXTENSION_SMTPUTF8) && client_mail_needs_utf8(&l->mail))
        return "message needs SMTPUTF8, which the host does not offer";
    *enhanced = "5.1.7";
    if (!client_is_sendable(outgoing_sender(l->mail.outgoing, e)))
        return "the sender's address cannot be sent";
    l->chunked = e->binary;
    l->body = e->binary                                                ? BODY_BINARYMIME
              : e->eight_bit && client_mail_has(c, EXTENSION_8BITMIME) ? BODY_8BITMIME
                                                                       : BODY_NONE;
    /* Fragments for another host of ours are never converted: it reassembles them. */
    bool fits = e->binary ? takes_binary(c) : !e->eight_bit || l->body != BODY_NONE;
    l->converting = !fits && !is_redirect;
    l->preparing = l->converting || l->mail.sign;
    l->prepare_due = l->preparing;
    return NULL;
}

struct downgrade_way
client_way(const struct client *c)
{
    const struct client_transaction *l = &c->slots[c->front];
    assert(l->active && l->preparing && l->converting);
    return (struct downgrade_way){.from_binary = l->mail.envelope->binary,
                                  .to_8bit = client_mail_has(c, EXTENSION_8BITMIME)};
}

enum signing_form
client_signing_form(const struct client *c, enum downgrade_verdict verdict)
{
    const struct client_transaction *l = &c->slots[c->front];
    if (verdict == DOWNGRADE_CONVERTIBLE)
        return client_way(c).to_8bit ? SIGNING_8BIT : SIGNING_7BIT;
    return l->chunked && !l->converting ? SIGNING_RAW : SIGNING_PLAIN;
}

/* A fragment of 8-bit content bounces: no host behind this one could convert a single
 * fragment (RFC 2046 §5.2.2). Other 8-bit content that must not be converted goes
 * unchanged, so that signatures stay valid. */
const char *
client_change_form(const struct client *c, struct client_transaction *l,
                   enum downgrade_verdict verdict, uint64_t size_max,
                   const char **enhanced)
{
    assert(l->preparing && !l->prepare_due);
    l->preparing = false;
    if (!l->converting) {
        *enhanced = "5.3.4";
        l->size += l->added;
        return too_large(c, l);
    }
    *enhanced = "5.6.3";
    if (verdict == DOWNGRADE_FRAGMENT && !l->mail.envelope->binary)
        return "message needs 8BITMIME, which the host does not offer, and cannot be "
               "converted";
    if (verdict == DOWNGRADE_FORBIDDEN || verdict == DOWNGRADE_FRAGMENT) {
        l->size += l->added;
        return l->mail.envelope->binary ? "message needs BINARYMIME, which the host "
                                          "does not offer, and cannot be converted"
                                        : NULL;
    }
    l->chunked = false;
    l->body = client_mail_has(c, EXTENSION_8BITMIME) ? BODY_8BITMIME : BODY_NONE;
    if (verdict == DOWNGRADE_CONVERTIBLE)
        l->size = size_max;
    l->size += l->added;
    *enhanced = "5.3.4";
    return too_large(c, l);
}

/* RFC 9422 §4: six digits, no leading zero. */
static void
client_mail_read_limit(struct text item, struct client_limits *limits)
{
    struct text name;
    uint64_t number;
    if (!text_cut(&item, '=', &name) || item.length > LIMIT_DIGITS_MAX ||
        text_starts(item, TEXT("0")) || !text_number(item, UINT32_MAX, &number))
        return;
    if (text_equal_nocase(name, TEXT("MAILMAX")))
        limits->mails = (unsigned)number;
    else if (text_equal_nocase(name, TEXT("RCPTMAX")))
        limits->recipients = (unsigned)number;
    else if (text_equal_nocase(name, TEXT("RCPTDOMAINMAX")))
        limits->domains = (unsigned)number;
}

struct client_limits
client_read_limits(struct text parameters)
{
    struct client_limits limits = {0};
    struct text item;
    while (text_word(&parameters, " ", &item))
        client_mail_read_limit(item, &limits);
    return limits;
}

/* --- Output ----------------------------------------------------------------------- */

static void
client_mail_say(struct client *c, struct text part)
{
    bool added = buffer_add(&c->output, part);
    assert(added);
}

static void
say_word(struct client *c, const char *word)
{
    client_mail_say(c, text_from(word));
}

static void
say_number(struct client *c, const char *key, int64_t number)
{
    say_word(c, key);
    bool added = buffer_add_number(&c->output, number);
    assert(added);
}

/* A value written by another program into the spool must not add a parameter. */
static bool
is_one_word(struct text t)
{
    return t.length > 0 && client_is_sendable(t) && text_find(t, ' ') == TEXT_NONE;
}

/* --- MAIL ------------------------------------------------------------------------- */

static void
say_dsn_of_mail(struct client *c, const struct envelope *e)
{
    switch (e->ret) {
    case RETURN_DEFAULT:
        break;
    case RETURN_HEADERS:
        say_word(c, " RET=HDRS");
        break;
    case RETURN_FULL:
        say_word(c, " RET=FULL");
        break;
    }
    if (is_one_word(e->envelope_id) && text_is_ascii(e->envelope_id)) {
        say_word(c, " ENVID=");
        client_mail_say(c, e->envelope_id);
    }
}

static void
say_body(struct client *c, enum body body)
{
    switch (body) {
    case BODY_NONE:
        break;
    case BODY_8BITMIME:
        say_word(c, " BODY=8BITMIME");
        break;
    case BODY_BINARYMIME:
        say_word(c, " BODY=BINARYMIME");
        break;
    }
}

bool
client_has_requiretls(const struct client *c)
{
    return c->secured && (c->extensions & EXTENSION_REQUIRETLS) != 0;
}

bool
client_keeps_required(const struct client *c)
{
    return c->settings.is_certain && client_has_requiretls(c);
}

void
client_say_mail(struct client *c, const struct client_transaction *l)
{
    const struct envelope *e = l->mail.envelope;
    say_word(c, "MAIL FROM:<");
    client_mail_say(c, outgoing_sender(l->mail.outgoing, e));
    say_word(c, ">");
    /* For converted content an upper bound: it is converted only while it is sent. */
    if (c->extensions & EXTENSION_SIZE)
        say_number(c, " SIZE=", (int64_t)l->size);
    say_body(c, l->body);
    if (l->utf8)
        say_word(c, " SMTPUTF8");
    if (e->priority != 0 && c->extensions & EXTENSION_MT_PRIORITY)
        say_number(c, " MT-PRIORITY=", e->priority);
    if (c->extensions & EXTENSION_DSN)
        say_dsn_of_mail(c, e);
    if (e->tls == ENVELOPE_TLS_REQUIRED && client_keeps_required(c))
        say_word(c, " REQUIRETLS");
    if (c->settings.redirect_to != NULL) {
        say_word(c, " XDEFRAG=");
        client_mail_say(c, e->fragment.set_mark);
    }
    say_word(c, "\r\n");
}

/* --- RCPT ------------------------------------------------------------------------- */

static void
say_notify(struct client *c, unsigned notify)
{
    static const struct {
        unsigned bit;
        const char *word;
    } words[] = {
        {NOTIFY_NEVER,   "NEVER"  },
        {NOTIFY_SUCCESS, "SUCCESS"},
        {NOTIFY_FAILURE, "FAILURE"},
        {NOTIFY_DELAY,   "DELAY"  },
    };
    const char *before = " NOTIFY=";
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if ((notify & words[i].bit) == 0)
            continue;
        say_word(c, before);
        say_word(c, words[i].word);
        before = ",";
        if (words[i].bit == NOTIFY_NEVER)
            return; /* NEVER excludes the others */
    }
}

/* RFC 6533: UTF-8 is sent as it is only with SMTPUTF8; otherwise it is escaped. */
static void
say_original(struct client *c, const struct client_transaction *l, struct text original)
{
    bool added = l->utf8 ? buffer_add(&c->output, original)
                         : xtext_write_utf8(original, &c->output);
    assert(added);
}

/* A notification that leaves with another sender than the null one must not cause one. */
static unsigned
rcpt_notify(const struct client_transaction *l, const struct recipient *r)
{
    const struct envelope *e = l->mail.envelope;
    bool is_bounce =
        e->sender.length == 0 && outgoing_sender(l->mail.outgoing, e).length > 0;
    return is_bounce ? NOTIFY_NEVER : r->notify;
}

void
client_say_rcpt(struct client *c, const struct client_transaction *l,
                const struct recipient *r)
{
    say_word(c, "RCPT TO:<");
    /* A source route of one hop names the host for which a fragment is:
     * smtp/redirect.h. */
    if (c->settings.redirect_to != NULL) {
        say_word(c, "@");
        say_word(c, c->settings.redirect_to);
        say_word(c, ":");
    }
    bool has_own = c->settings.to == NULL || c->settings.to[0] == '\0';
    client_mail_say(c, has_own ? r->address : text_from(c->settings.to));
    say_word(c, ">");
    if (c->extensions & EXTENSION_DSN) {
        say_notify(c, rcpt_notify(l, r));
        if (is_one_word(r->original) && text_is_utf8(r->original)) {
            say_word(c, " ORCPT=");
            say_original(c, l, r->original);
        }
    }
    say_word(c, "\r\n");
}
