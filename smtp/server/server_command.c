/* The commands of the SMTP server: a table of verbs, their stages and functions. */
#include "smtp/server/server_internal.h"

#include "base/memory.h"
#include "mime/date.h"

#include <assert.h>
#include <stdlib.h>

enum {
    ANY = SERVER_NEW | SERVER_READY | SERVER_MAIL | SERVER_RCPT | SERVER_CHUNKS,
    HELO_MAX = 255,
    CHUNK_JUNK = 1024, /* a smaller chunk that is not the last counts as junk */
    NODE_MAX = 1 + ADDRESS_DOMAIN_MAX
};

static const struct refusal not_smtp = {521, "5.5.1",
                                        "this is an SMTP server, closing"};
static const struct refusal control = {500, "5.5.2", "control character in a command"};
static const struct refusal unknown = {500, "5.5.2", "command not recognized"};
static const struct refusal not_here = {500, "5.5.1",
                                        "use LHLO with LMTP, EHLO with SMTP"};
static const struct refusal no_argument = {501, "5.5.4",
                                           "this command takes no argument"};
static const struct refusal needs_argument = {501, "5.5.4",
                                              "this command needs an argument"};
static const struct refusal bad_name = {501, "5.5.4", "invalid host name"};
static const struct refusal unsupported = {502, "5.5.1", "command not supported"};
static const struct refusal no_chunks = {502, "5.5.1", "BDAT is not offered, closing"};
static const struct refusal auth_first = {530, "5.7.0", "authentication required"};
static const struct refusal tls_and_auth_first = {
    530, "5.7.0", "must issue a STARTTLS command first, then authenticate"};
static const struct refusal tls_full = {454, "4.7.0",
                                        "too many TLS sessions, try again later"};
static const struct refusal tls_full_closing = {
    421, "4.7.0", "too many TLS sessions, try again later"};
static const struct refusal has_tls = {503, "5.5.1", "TLS is already active"};
static const struct refusal hello_first = {503, "5.5.1", "send EHLO first"};
static const struct refusal mail_first = {503, "5.5.1", "send MAIL first"};
static const struct refusal nested = {503, "5.5.1", "mail transaction already open"};
static const struct refusal after_chunks = {503, "5.5.1",
                                            "only BDAT or RSET may follow BDAT"};
static const struct refusal binary_data = {503, "5.5.1", "BINARYMIME requires BDAT"};
static const struct refusal no_recipients = {554, "5.5.1", "no valid recipients"};
static const struct refusal no_recipients_lmtp = {503, "5.5.1", "no valid recipients"};
static const struct refusal too_many_recipients = {452, "4.5.3", "too many recipients"};
static const struct refusal no_tls_yet = {530, "5.7.0",
                                          "REQUIRETLS is offered under TLS alone"};
static const struct refusal no_release = {555, "5.5.4", "FUTURERELEASE is not offered"};
static const struct refusal too_late = {
    501, "5.5.4", "released too late: EHLO says until when mail can be kept"};
static const struct refusal no_priority = {555, "5.5.4", "MT-PRIORITY is not offered"};
static const struct refusal no_redirect = {555, "5.5.4", "unknown parameter"};
static const struct refusal no_fragment = {
    554, "5.6.1", "a fragment must not have the null sender or BODY=BINARYMIME"};
static const struct refusal too_large = {552, "5.3.4", "message is too large"};
static const struct refusal flood = {552, "5.3.4", "message is too large, closing"};
static const struct refusal bad_chunk = {501, "5.5.4", "syntax: BDAT size [LAST]"};
static const struct refusal bad_node = {501, "5.5.4",
                                        "syntax: ETRN domain or ETRN @domain"};
static const struct refusal bad_size = {521, "5.5.4", "bad chunk size, closing"};

/* EHLO in the middle of a transaction is RSET as well (RFC 5321 §4.1.4). */
static void
server_command_greet(struct server *s, struct text name, bool esmtp)
{
    server_end_transaction(s);
    free(s->helo);
    s->helo = text_string(name);
    s->esmtp = esmtp;
    server_enter(s, SERVER_READY);
}

static bool
offers_etrn(const struct server *s)
{
    return s->rules->etrn && !s->lmtp;
}

/* A device may have no name, a long one, or one in Latin-1: it is only for Received. */
static struct text
tolerable_name(const struct server *s, struct text name, char plain[HELO_MAX])
{
    if (!s->offer.legacy || (name.length <= HELO_MAX && text_is_utf8(name)))
        return name;
    name = text_before(name, HELO_MAX);
    for (size_t at = 0; at < name.length; at++)
        plain[at] = (unsigned char)name.at[at] < 0x80 ? name.at[at] : '?';
    return text_of(plain, name.length);
}

/* For submission (RFC 4865 §3): an untrusted client would have us keep what it likes. */
static bool
keeps_until_release(const struct server *s)
{
    return s->rules->future_release_s > 0 && server_may_relay(s);
}

static int64_t
server_now_ms(const struct server *s)
{
    return (int64_t)s->load.now_s * 1000;
}

static void
offer_release(struct server *s)
{
    char date[DATE_TEXT_MAX];
    date_format_utc(server_now_ms(s) + s->rules->future_release_s * 1000, date);
    reply_write_more(s->out, 250, NULL, "FUTURERELEASE %lld %s",
                     (long long)s->rules->future_release_s, date);
}

/* The extensions are those that this session can use now: STARTTLS not under TLS, AUTH
 * only where the password is safe, no chunks from devices whose line ends are
 * repaired. */
static enum server_action
on_hello(struct server *s, struct text args, bool esmtp)
{
    char plain[HELO_MAX];
    args = tolerable_name(s, args, plain);
    if (args.length == 0 && !s->offer.legacy)
        return server_refuse(s, &needs_argument);
    if (args.length > HELO_MAX || !text_is_utf8(args))
        return server_refuse(s, &bad_name);
    /* Without the offer of STARTTLS some clients would send in cleartext. */
    if (esmtp && s->load.tls_full && server_is_untrusted(s)) {
        server_close_with(s, &tls_full_closing);
        return SERVER_GO_ON;
    }
    server_command_greet(s, args, esmtp);
    if (!esmtp) {
        reply_write(s->out, 250, NULL, "%s", s->rules->hostname);
        return SERVER_GO_ON;
    }
    reply_write_more(s->out, 250, NULL, "%s", s->rules->hostname);
    reply_write_more(s->out, 250, NULL, "PIPELINING");
    reply_write_more(s->out, 250, NULL, "SIZE %lld", (long long)s->rules->size_limit);
    reply_write_more(s->out, 250, NULL, "8BITMIME");
    reply_write_more(s->out, 250, NULL, "SMTPUTF8");
    if (!s->offer.legacy)
        reply_write_more(s->out, 250, NULL, "CHUNKING");
    if (!s->offer.legacy)
        reply_write_more(s->out, 250, NULL, "BINARYMIME");
    reply_write_more(s->out, 250, NULL, "ENHANCEDSTATUSCODES");
    reply_write_more(s->out, 250, NULL, "LIMITS RCPTMAX=%d", s->rules->recipient_limit);
    if (s->offer.starttls && !s->secure)
        reply_write_more(s->out, 250, NULL, "STARTTLS");
    if (s->secure)
        reply_write_more(s->out, 250, NULL, "REQUIRETLS");
    if (server_offers_auth(s))
        reply_write_more(s->out, 250, NULL, "AUTH %s", server_mechanisms(s));
    /* Old devices look for the form before RFC 2554. */
    if (server_offers_auth(s) && s->offer.legacy)
        reply_write_more(s->out, 250, NULL, "AUTH=%s", server_mechanisms(s));
    if (offers_etrn(s))
        reply_write_more(s->out, 250, NULL, "ETRN");
    if (s->rules->priority) /* no profile name: all 19 values are passed on unchanged */
        reply_write_more(s->out, 250, NULL, "MT-PRIORITY");
    if (s->offer.defrag_host != NULL)
        reply_write_more(s->out, 250, NULL, "XDEFRAG");
    if (keeps_until_release(s))
        offer_release(s);
    reply_write(s->out, 250, NULL, "DSN");
    return SERVER_GO_ON;
}

static enum server_action
on_ehlo(struct server *s, struct text args)
{
    return s->lmtp ? server_refuse(s, &not_here) : on_hello(s, args, true);
}

static enum server_action
on_helo(struct server *s, struct text args)
{
    return s->lmtp ? server_refuse(s, &not_here) : on_hello(s, args, false);
}

static enum server_action
on_lhlo(struct server *s, struct text args)
{
    return s->lmtp ? on_hello(s, args, true) : server_refuse(s, &not_here);
}

/* RFC 6710 §4.1 lets the server change the priority; no client is refused for it. */
static int
grant_priority(const struct server *s, const struct mail_parameters *p)
{
    bool trusted = server_may_relay(s) || s->rules->priority_of_strangers ||
                   p->has_set_mark; /* granted by the host that received it */
    return p->priority > 0 && !trusted ? 0 : p->priority;
}

/* Checks valid parameters against the extensions offered in this session. */
static const struct refusal *
server_command_forbid(const struct server *s, const struct mail_parameters *p,
                      const struct refusal *refusal)
{
    if (p->has_priority && !s->rules->priority)
        return &no_priority;
    if (p->has_set_mark && s->offer.defrag_host == NULL)
        return &no_redirect;
    if (p->requires_tls && !s->secure)
        return &no_tls_yet;
    if (p->has_hold && !keeps_until_release(s))
        return &no_release;
    if (refusal == NULL && p->has_hold &&
        (p->hold_s > s->rules->future_release_s ||
         p->hold_until_ms - server_now_ms(s) > s->rules->future_release_s * 1000))
        return &too_late;
    if (refusal == NULL && p->has_set_mark &&
        (p->sender.address.local.length == 0 || p->binary))
        return &no_fragment;
    return refusal;
}

/* Asked before anything of the command is parsed, so that a client without a login
 * learns nothing. */
static bool
needs_auth(const struct server *s)
{
    return s->offer.auth_required && s->user == NULL;
}

/* AUTH may be offered only after STARTTLS: then the reply asks for both. */
static enum server_action
refuse_without_auth(struct server *s)
{
    bool hidden = !server_offers_auth(s) && s->offer.starttls && !s->secure;
    return server_refuse(s, hidden ? &tls_and_auth_first : &auth_first);
}

static struct path_rules
path_rules(const struct server *s)
{
    return (struct path_rules){.forgiving = server_forgives(s),
                               .hostname = text_from(s->rules->hostname)};
}

/* The size that the client declares saves both sides the transfer (RFC 1870 §6.1). The
 * checks that need settings and disk are the owner's: hence the question. */
static enum server_action
on_mail(struct server *s, struct text args)
{
    struct mail_parameters parameters;
    assert(s->transaction == NULL);
    if (needs_auth(s))
        return refuse_without_auth(s);
    const struct path_rules rules = path_rules(s);
    const struct refusal *refusal = parameters_read_mail(args, &rules, &parameters);
    refusal = server_command_forbid(s, &parameters, refusal);
    if (refusal != NULL)
        return server_refuse(s, refusal);
    if (s->rules->size_limit > 0 && parameters.size > s->rules->size_limit)
        return server_refuse(s, &too_large);
    s->transaction = transaction_new(&parameters, grant_priority(s, &parameters));
    normalize_content_start(&s->transaction->newlines, server_forgives(s));
    s->transaction->gathers_head = server_may_relay(s) && s->rules->senders != NULL;
    s->transaction->envelopes = s->envelopes;
    s->transaction->recipients_max = server_may_relay(s)
                                         ? (unsigned)ENVELOPE_RECIPIENTS_MAX
                                         : (unsigned)s->rules->recipient_limit;
    s->transaction->envelopes_max =
        server_may_relay(s) ? SERVER_ENVELOPES_MAX : SERVER_ENVELOPES_UNTRUSTED_MAX;
    s->question = SERVER_ASKS_ADMISSION;
    return SERVER_ADMIT;
}

/* The limit is looked at after the syntax: a bad address is an error of its own, and
 * some clients take 452 as "send the rest in another transaction" (RFC 5321
 * §4.5.3.1.10). */
static enum server_action
on_rcpt(struct server *s, struct text args)
{
    struct server_transaction *t = s->transaction;
    const struct server_rules *r = s->rules;
    struct text domain =
        text_from(r->postmaster_domain ? r->postmaster_domain : r->hostname);
    const struct path_rules rules = path_rules(s);
    const struct refusal *refusal =
        transaction_ask(t, args, &rules, text_from(s->offer.defrag_host), domain);
    if (refusal != NULL)
        return server_refuse(s, refusal);
    s->question = SERVER_ASKS_RECIPIENT;
    if (t->accepted >= (unsigned)s->rules->recipient_limit ||
        t->envelope->count >= t->recipients_max) {
        server_refuse_excess(s, &too_many_recipients);
        s->question = SERVER_ASKS_NOTHING;
        return SERVER_GO_ON;
    }
    if (!transaction_knows(t))
        return SERVER_CHECK;
    if (server_idles(s)) /* a repeated recipient counts as junk */
        server_recipient_checked(s, NULL);
    return SERVER_GO_ON;
}

static const struct refusal *
nobody(const struct server *s)
{
    return s->lmtp ? &no_recipients_lmtp : &no_recipients;
}

/* Without recipients RFC 5321 §3.3 asks for 554, RFC 2033 §4.2 for 503. */
static enum server_action
on_data(struct server *s, struct text args)
{
    if (args.length > 0)
        return server_refuse(s, &no_argument);
    if (s->stage == SERVER_MAIL)
        return server_refuse(s, nobody(s));
    if (s->transaction->envelope->binary) /* RFC 3030 §3 */
        return server_refuse(s, &binary_data);
    s->question = SERVER_ASKS_DRAFT;
    return SERVER_BEGIN;
}

/* A chunk that is much larger than any message is not read: it would keep the
 * session busy for nothing. */
void
server_refuse_chunk(struct server *s, uint64_t size, int code, const char *enhanced,
                    const char *text)
{
    uint64_t worth = (uint64_t)s->rules->size_limit + SERVER_EXCESS_MAX;
    if (size > worth) {
        server_close_with(s, &flood);
        return;
    }
    /* The last chunk of an LMTP transaction has a reply for each recipient. */
    if (s->transaction != NULL && s->transaction->chunk_last &&
        s->transaction->accepted)
        server_refuse_content(s, code, enhanced, text);
    else
        server_refuse_with(s, code, enhanced, text);
    server_end_transaction(s);
    if (s->stage != SERVER_CLOSED)
        s->skip = size;
}

/* NULL: a chunk of that size is permitted now. */
static const struct refusal *
chunk_trouble(const struct server *s, uint64_t size, bool well_formed)
{
    if (s->transaction == NULL)
        return s->stage == SERVER_NEW ? &hello_first : &mail_first;
    if (!well_formed)
        return &bad_chunk;
    if (s->stage == SERVER_MAIL)
        return nobody(s);
    int64_t limit = s->rules->size_limit;
    if (limit > 0 && size > (uint64_t)(limit - s->transaction->size))
        return &too_large;
    return NULL;
}

/* The size has to be understood before anything is refused: without it nobody knows
 * where the next command begins. */
static enum server_action
on_bdat(struct server *s, struct text args)
{
    struct server_transaction *t = s->transaction;
    struct text word;
    uint64_t size;
    /* The session ends, because the chunk would be read as commands. */
    if (s->offer.legacy) {
        server_close_with(s, &no_chunks);
        return SERVER_GO_ON;
    }
    /* Without a size the start of the next command is unknown. */
    if (!text_word(&args, " ", &word) || !text_number(word, INT64_MAX, &size)) {
        server_close_with(s, &bad_size);
        return SERVER_GO_ON;
    }
    args = text_trim(args);
    bool last = text_equal_nocase(args, TEXT("LAST"));
    if (t != NULL)
        t->chunk_last = last;
    const struct refusal *r = chunk_trouble(s, size, last || args.length == 0);
    if (r != NULL) {
        server_refuse_chunk(s, size, r->code, r->enhanced, r->text);
        return SERVER_GO_ON;
    }
    /* A client that sends content byte by byte makes a reply for each. */
    if (!last && size < CHUNK_JUNK && !server_idles(s))
        return SERVER_GO_ON;
    t->chunk_left = t->chunk_size = size;
    if (t->chunked) {
        server_enter(s, SERVER_CHUNK);
        return SERVER_GO_ON;
    }
    t->chunked = true;
    s->question = SERVER_ASKS_DRAFT;
    return SERVER_BEGIN;
}

static enum server_action
on_rset(struct server *s, struct text args)
{
    if (args.length > 0)
        return server_refuse(s, &no_argument);
    server_end_transaction(s);
    reply_write(s->out, 250, "2.0.0", "Ok");
    return SERVER_GO_ON;
}

static enum server_action
on_noop(struct server *s, struct text args)
{
    (void)args;
    reply_write(s->out, 250, "2.0.0", "Ok");
    return SERVER_GO_ON;
}

/* 252 tells nothing about an address; 550 would let a client guess them (RFC 5321
 * §3.5.3). */
static enum server_action
on_vrfy(struct server *s, struct text args)
{
    if (needs_auth(s))
        return refuse_without_auth(s);
    if (args.length == 0)
        return server_refuse(s, &needs_argument);
    reply_write(s->out, 252, "2.5.0",
                "cannot verify, but will accept the message and attempt delivery");
    return SERVER_GO_ON;
}

/* RFC 1985 §5.2: a domain, @domain with its sub-domains, or #queue. There are no named
 * queues. */
static enum server_action
on_etrn(struct server *s, struct text args)
{
    if (!offers_etrn(s))
        return server_refuse(s, &unsupported);
    if (needs_auth(s))
        return refuse_without_auth(s);
    bool wide = text_starts(args, TEXT("@"));
    if (args.length > 0 && args.length <= NODE_MAX && args.at[0] == '#') {
        server_refuse_format(s, 459, "4.7.1",
                             "Node %.*s not allowed: no queue has that name",
                             TEXT_ARGS(args));
        return SERVER_GO_ON;
    }
    if (args.length > NODE_MAX || !text_is_ascii(args) ||
        !address_is_domain(text_after(args, wide ? 1 : 0)))
        return server_refuse(s, args.length == 0 ? &needs_argument : &bad_node);
    assert(s->node == NULL);
    s->node = text_string(args);
    text_lower(s->node, args.length);
    s->question = SERVER_ASKS_FLUSH;
    return SERVER_FLUSH;
}

/* A refusal here leaves the session as it is: the client may go on in cleartext, or
 * give up. */
static enum server_action
on_starttls(struct server *s, struct text args)
{
    if (s->secure)
        return server_refuse(s, &has_tls);
    if (!s->offer.starttls)
        return server_refuse(s, &unsupported);
    if (args.length > 0)
        return server_refuse(s, &no_argument);
    if (s->load.tls_full)
        return server_refuse(s, &tls_full);
    reply_write(s->out, 220, "2.0.0", "go ahead");
    s->question = SERVER_ASKS_TLS;
    return SERVER_SECURE;
}

static enum server_action
on_help(struct server *s, struct text args)
{
    (void)args;
    reply_write(s->out, 214, "2.0.0",
                "%s MAIL RCPT DATA %sRSET NOOP VRFY %s%sHELP QUIT",
                s->lmtp ? "LHLO" : "EHLO HELO", s->offer.legacy ? "" : "BDAT ",
                offers_etrn(s) ? "ETRN " : "", server_offers_auth(s) ? "AUTH " : "");
    return SERVER_GO_ON;
}

static enum server_action
on_quit(struct server *s, struct text args)
{
    if (args.length > 0 && !server_forgives(s))
        return server_refuse(s, &no_argument);
    reply_write(s->out, 221, "2.0.0", "%s closing", s->rules->hostname);
    server_end_transaction(s);
    server_enter(s, SERVER_CLOSED);
    return SERVER_GO_ON;
}

static enum server_action
on_unsupported(struct server *s, struct text args)
{
    (void)args;
    return server_refuse(s, &unsupported);
}

static const struct command {
    struct text verb;
    unsigned legal;                  /* stages in which it is permitted... */
    const struct refusal *otherwise; /* ...and the reply in other stages, after EHLO */
    enum server_action (*run)(struct server *, struct text args);
    bool idle; /* counts as junk: does not advance a transaction */
} commands[] = {
    {TEXT("EHLO"),     ANY,                       NULL,        on_ehlo,        true },
    {TEXT("HELO"),     ANY,                       NULL,        on_helo,        true },
    {TEXT("LHLO"),     ANY,                       NULL,        on_lhlo,        true },
    {TEXT("MAIL"),     SERVER_READY,              &nested,     on_mail,        false},
    {TEXT("RCPT"),     SERVER_MAIL | SERVER_RCPT, &mail_first, on_rcpt,        false},
    {TEXT("DATA"),     SERVER_MAIL | SERVER_RCPT, &mail_first, on_data,        false},
    {TEXT("BDAT"),     ANY,                       NULL,        on_bdat,        false},
    {TEXT("RSET"),     ANY,                       NULL,        on_rset,        true },
    {TEXT("NOOP"),     ANY,                       NULL,        on_noop,        true },
    {TEXT("VRFY"),     ANY,                       NULL,        on_vrfy,        true },
    {TEXT("ETRN"),     SERVER_READY,              &nested,     on_etrn,        true },
    {TEXT("STARTTLS"), SERVER_READY,              &nested,     on_starttls,    false},
    {TEXT("AUTH"),     SERVER_READY,              &nested,     server_auth,    false},
    {TEXT("HELP"),     ANY,                       NULL,        on_help,        true },
    {TEXT("QUIT"),     ANY,                       NULL,        on_quit,        false},
    {TEXT("EXPN"),     ANY,                       NULL,        on_unsupported, false},
    {TEXT("TURN"),     ANY,                       NULL,        on_unsupported, false},
    {TEXT("SEND"),     ANY,                       NULL,        on_unsupported, false},
    {TEXT("SOML"),     ANY,                       NULL,        on_unsupported, false},
    {TEXT("SAML"),     ANY,                       NULL,        on_unsupported, false},
};

/* A browser, or a web page that makes a browser connect to us (the ALPACA attack). */
static bool
is_http(struct text line)
{
    static const char *const methods[] = {"GET ",  "POST ",    "PUT ",
                                          "HEAD ", "OPTIONS ", "CONNECT "};
    for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
        if (text_starts_nocase(line, text_from(methods[i])))
            return true;
    return false;
}

static const struct refusal *
misplaced(const struct server *s, const struct command *command)
{
    if (s->stage == SERVER_NEW)
        return &hello_first;
    return s->stage == SERVER_CHUNKS ? &after_chunks : command->otherwise;
}

/* A client that does not wait for the reply to AUTH may send a secret as a command. */
static enum server_action
refuse_unknown(struct server *s, const struct refusal *refusal)
{
    if (s->hushed)
        s->command = TEXT("");
    return server_refuse(s, refusal);
}

/* Blanks for the TABs of a client that is forgiven, none in front. A line of AUTH may be
 * longer, and stays. */
static struct text
server_command_untab(const struct server *s, struct text line,
                     char plain[SERVER_LINE_MAX])
{
    if (!server_forgives(s) || line.length > SERVER_LINE_MAX)
        return line;
    for (size_t at = 0; at < line.length; at++)
        plain[at] = line.at[at] == '\t' ? ' ' : line.at[at];
    line = text_of(plain, line.length);
    while (text_starts(line, TEXT(" ")))
        line = text_after(line, 1);
    return line;
}

enum server_action
server_command(struct server *s, struct text line)
{
    char plain[SERVER_LINE_MAX];
    line = server_command_untab(s, line, plain);
    struct text rest = line, verb;
    if (s->stage == SERVER_NEW && is_http(line)) {
        server_close_with(s, &not_smtp);
        return SERVER_GO_ON;
    }
    if (text_has_control(line))
        return refuse_unknown(s, &control);
    if (!text_cut(&rest, ' ', &verb))
        return server_refuse(s, &unknown);
    server_count_verb(s, verb);
    rest = text_trim(rest);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
        const struct command *command = &commands[i];
        if (!text_equal_nocase(verb, command->verb))
            continue;
        s->hushed = command->run == server_auth;
        if (s->stage == SERVER_NEW && s->offer.unannounced && command->run == on_mail)
            server_command_greet(s, TEXT(""), false);
        if ((command->legal & (unsigned)s->stage) == 0)
            return server_refuse(s, misplaced(s, command));
        if (command->idle && !server_idles(s))
            return SERVER_GO_ON;
        return command->run(s, rest);
    }
    return refuse_unknown(s, &unknown);
}
