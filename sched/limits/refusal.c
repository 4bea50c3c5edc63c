/* Classes of refusals, by a table of codes and phrases. */
#include "sched/limits/refusal.h"

#include "sched/limits/reply_words.h"

#include <stdio.h>
#include <string.h>

enum provider { ANY, GOOGLE, MICROSOFT, YAHOO, AMAZON };

static const struct {
    const char *suffix;
    enum provider provider;
} hosts[] = {
    {".google.com",     GOOGLE   },
    {".googlemail.com", GOOGLE   },
    {".gmail.com",      GOOGLE   },
    {".outlook.com",    MICROSOFT},
    {".office365.com",  MICROSOFT},
    {".mx.microsoft",   MICROSOFT},
    {".hotmail.com",    MICROSOFT},
    {".yahoodns.net",   YAHOO    },
    {".yahoo.com",      YAHOO    },
    {".amazonaws.com",  AMAZON   },
};
static const char *const provider_names[] = {[ANY] = "the receiver",
                                             [GOOGLE] = "Google",
                                             [MICROSOFT] = "Microsoft",
                                             [YAHOO] = "Yahoo",
                                             [AMAZON] = "Amazon SES"};

/* A row matches if all its members that are set match: the class of the code (4, 5), the
 * code, subject and detail of the enhanced code (detail from..to), the receiver, the
 * phrase from the start of a word on, and `then` behind it. */
struct row {
    enum refusal_class class;
    int family, code, subject, from, to;
    enum provider provider;
    const char *phrase, *then;
};
#define DETAIL(class, family, subject, from, to, provider)                             \
    {                                                                                  \
        class, family, 0, subject, from, to, provider, NULL, NULL                      \
    }
#define CODE(class, code, phrase, then)                                                \
    {                                                                                  \
        class, 0, code, 0, 0, 0, ANY, phrase, then                                     \
    }
#define WORDS(class, phrase, then)                                                     \
    {                                                                                  \
        class, 0, 0, 0, 0, 0, ANY, phrase, then                                        \
    }

/* The first row that matches decides. */
static const struct row rows[] = {
  /* Codes with one meaning, or with one at this receiver. */
    WORDS(REFUSAL_OTHER, " rate that prevents", NULL),
    WORDS(REFUSAL_OTHER, " configuration set", NULL),
    WORDS(REFUSAL_OTHER, " account inbounds disabled", NULL),
    WORDS(REFUSAL_OTHER, " mailpolicy violation", NULL),
    WORDS(REFUSAL_OTHER, " blocked by your organization", NULL),
    WORDS(REFUSAL_OTHER, " resolver rst authrequired", NULL),
    WORDS(REFUSAL_QUOTA, " submission quota", NULL),
    WORDS(REFUSAL_NO_DOMAIN, " null mx", NULL),
    WORDS(REFUSAL_PTR, " email over ipv6", NULL),
    WORDS(REFUSAL_PTR, " over ipv6 must pass", NULL),
    WORDS(REFUSAL_PTR, " ipv6 sending guidelines", NULL),
    WORDS(REFUSAL_FULL, " recipient overquota", NULL),
    WORDS(REFUSAL_FULL, " user over quota", NULL),
    WORDS(REFUSAL_FULL, " user is over quota", NULL),
    DETAIL(REFUSAL_PTR, 0, 7, 25, 25, ANY),
    DETAIL(REFUSAL_PTR, 4, 7, 23, 23, ANY),
    DETAIL(REFUSAL_PTR, 5, 7, 510, 510, MICROSOFT),
    DETAIL(REFUSAL_AUTH, 0, 7, 26, 26, ANY),
    DETAIL(REFUSAL_AUTH, 4, 7, 27, 27, ANY),
    DETAIL(REFUSAL_AUTH, 5, 7, 27, 27, GOOGLE),
    DETAIL(REFUSAL_TLS, 0, 7, 29, 29, ANY),
    DETAIL(REFUSAL_AUTH, 4, 7, 30, 32, ANY),
    DETAIL(REFUSAL_AUTH, 5, 7, 30, 32, GOOGLE),
    DETAIL(REFUSAL_AUTH, 0, 7, 40, 40, ANY),
    DETAIL(REFUSAL_AUTH, 0, 7, 509, 509, MICROSOFT),
    DETAIL(REFUSAL_AUTH, 0, 7, 515, 515, MICROSOFT),
    DETAIL(REFUSAL_AUTH, 5, 7, 20, 24, ANY),
    DETAIL(REFUSAL_AUTH, 0, 7, 9, 9, YAHOO),
    DETAIL(REFUSAL_LOGIN, 0, 7, 57, 57, MICROSOFT),
    DETAIL(REFUSAL_LOGIN, 0, 7, 139, 139, MICROSOFT),
    DETAIL(REFUSAL_SENDER, 0, 7, 60, 60, MICROSOFT),
    DETAIL(REFUSAL_REPUTATION, 5, 7, 606, 649, MICROSOFT),
    DETAIL(REFUSAL_REPUTATION, 0, 7, 650, 650, MICROSOFT),
    DETAIL(REFUSAL_REPUTATION, 0, 7, 511, 511, MICROSOFT),
    DETAIL(REFUSAL_POLICY, 5, 1, 8, 8, MICROSOFT),
    DETAIL(REFUSAL_POLICY, 5, 7, 501, 503, MICROSOFT),
    DETAIL(REFUSAL_POLICY, 5, 7, 705, 705, MICROSOFT),
    DETAIL(REFUSAL_QUOTA, 5, 7, 232, 233, MICROSOFT),
    DETAIL(REFUSAL_REPUTATION, 5, 7, 708, 708, MICROSOFT),
    DETAIL(REFUSAL_SENDER, 5, 7, 750, 750, MICROSOFT),
    DETAIL(REFUSAL_NO_USER, 5, 7, 504, 505, MICROSOFT),
    {REFUSAL_NO_USER, 5, 0,   4, 1, 1, MICROSOFT, " recipient address rejected", NULL},
    DETAIL(REFUSAL_QUOTA, 5, 4, 5, 5, GOOGLE),
    DETAIL(REFUSAL_NO_DOMAIN, 5, 4, 310, 310, ANY),
    DETAIL(REFUSAL_NO_DOMAIN, 5, 1, 2, 2, ANY),
    DETAIL(REFUSAL_NO_USER, 5, 1, 1, 1, ANY),
    DETAIL(REFUSAL_NO_USER, 5, 1, 3, 3, ANY),
    DETAIL(REFUSAL_NO_USER, 5, 1, 6, 6, ANY),
    DETAIL(REFUSAL_NO_USER, 5, 1, 10, 10, ANY),
    DETAIL(REFUSAL_NO_USER, 5, 2, 1, 1, ANY),
    DETAIL(REFUSAL_FULL, 0, 2, 2, 2, ANY),
    DETAIL(REFUSAL_TOO_BIG, 5, 3, 4, 4, ANY),
    DETAIL(REFUSAL_TOO_BIG, 5, 2, 3, 3, ANY),
    DETAIL(REFUSAL_FORM, 5, 6, 0, 0, ANY),
 /* Login. 535 and 534 have no other meaning. */
    CODE(REFUSAL_LOGIN, 534, NULL, NULL),
    CODE(REFUSAL_LOGIN, 535, NULL, NULL),
    CODE(REFUSAL_TLS, 530, " starttls", NULL),
    CODE(REFUSAL_LOGIN, 530, " authentic", NULL),
    CODE(REFUSAL_LOGIN, 530, " auth command", NULL),
    WORDS(REFUSAL_LOGIN, " basic authentication", NULL),
    WORDS(REFUSAL_LOGIN, " application specific password", NULL),
    WORDS(REFUSAL_LOGIN, " username and password", NULL),
    WORDS(REFUSAL_LOGIN, " smtpclientauthentication is disabled", NULL),
    WORDS(REFUSAL_LOGIN, " client was not authenticated", NULL),
    WORDS(REFUSAL_LOGIN, " authentif", NULL),
    WORDS(REFUSAL_LOGIN, " unrecognized authentication type", NULL),
    WORDS(REFUSAL_LOGIN, " unauthenticated senders not allowed", NULL),
    WORDS(REFUSAL_LOGIN, " please authenticate first", NULL),
    WORDS(REFUSAL_LOGIN, " send auth command", NULL),
    WORDS(REFUSAL_LOGIN, " not authorized to perform", NULL),
    WORDS(REFUSAL_TLS, " must issue a starttls", NULL),
    WORDS(REFUSAL_TLS, " must issue starttls", NULL),
    WORDS(REFUSAL_TLS, " tls required", NULL),
    WORDS(REFUSAL_TLS, " tls is required", NULL),
    WORDS(REFUSAL_TLS, " requires encryption", NULL),
    WORDS(REFUSAL_TLS, " starttls is required", NULL),
    WORDS(REFUSAL_TLS, " route requires tls", NULL),
    WORDS(REFUSAL_TLS, " high strength ciphers", NULL),
 /* The limit of the account. */
    WORDS(REFUSAL_QUOTA, " daily user sending limit", NULL),
    WORDS(REFUSAL_QUOTA, " daily smtp relay", " limit"),
    WORDS(REFUSAL_QUOTA, " daily message quota", NULL),
    WORDS(REFUSAL_QUOTA, " daily sending quota", NULL),
    WORDS(REFUSAL_QUOTA, " sending quota", NULL),
    WORDS(REFUSAL_QUOTA, " maximum credits", NULL),
    WORDS(REFUSAL_QUOTA, " daily limit for message recipients", NULL),
    WORDS(REFUSAL_QUOTA, " daily limit for sending", NULL),
    WORDS(REFUSAL_QUOTA, " daily sending limit", NULL),
    WORDS(REFUSAL_QUOTA, " daily email sending quota", NULL),
    WORDS(REFUSAL_QUOTA, " exceed sending limit", NULL),
    WORDS(REFUSAL_QUOTA, " exceeded your messaging limits", NULL),
    WORDS(REFUSAL_QUOTA, " not allowed to send", " recipient limit exceeded"),
    WORDS(REFUSAL_QUOTA, " mail send limit exceeded", NULL),
    WORDS(REFUSAL_QUOTA, " exceeded the max emails per hour", NULL),
    WORDS(REFUSAL_QUOTA, " exceeded the max defers", NULL),
    WORDS(REFUSAL_QUOTA, " message count quota exceeded", NULL),
    WORDS(REFUSAL_POLICY, " unusual sending activity", NULL),
    WORDS(REFUSAL_POLICY, " email outgoing blocked", NULL),
    WORDS(REFUSAL_POLICY, " sending paused for", NULL),
    WORDS(REFUSAL_POLICY, " sending suspended for", NULL),
    WORDS(REFUSAL_POLICY, " not yet activated", NULL),
    WORDS(REFUSAL_POLICY, " pending approval", NULL),
    WORDS(REFUSAL_POLICY, " account outbounds disabled", NULL),
    WORDS(REFUSAL_SENDER, " sendasdenied", NULL),
    WORDS(REFUSAL_SENDER, " not allowed to send as", NULL),
    WORDS(REFUSAL_SENDER, " not owned by", NULL),
    WORDS(REFUSAL_SENDER, " email address is not verified", NULL),
    WORDS(REFUSAL_SENDER, " from address does not match", NULL),
    WORDS(REFUSAL_SENDER, " sender identity", NULL),
    WORDS(REFUSAL_SENDER, " sender signature", NULL),
    WORDS(REFUSAL_SENDER, " sender address not authorized", NULL),
    WORDS(REFUSAL_SENDER, " unconfigured sending domain", NULL),
    WORDS(REFUSAL_SENDER, " sandbox subdomains", NULL),
    WORDS(REFUSAL_SENDER, " sender you used", NULL),
    WORDS(REFUSAL_SENDER, " send from this header", NULL),
    WORDS(REFUSAL_SENDER, " same as authorization user", NULL),
    WORDS(REFUSAL_SENDER, " equal authorized user", NULL),
    WORDS(REFUSAL_SENDER, " relaying disallowed as", NULL),
    WORDS(REFUSAL_SENDER, " domain of sender address", NULL),
    WORDS(REFUSAL_SENDER, " sender verify failed", NULL),
    WORDS(REFUSAL_SENDER, " mail sending denied", NULL),
    WORDS(REFUSAL_SENDER, " permissions to send as", NULL),
    WORDS(REFUSAL_SENDER, " authorized to send from that", NULL),
    WORDS(REFUSAL_SENDER, " from address not verified", NULL),
    WORDS(REFUSAL_SENDER, " domain is not verified", NULL),
    WORDS(REFUSAL_SENDER, " sender address is not allowed", NULL),
    WORDS(REFUSAL_SENDER, " invalid dns mx", NULL),
    WORDS(REFUSAL_SENDER, " not one of your addresses", NULL),
    WORDS(REFUSAL_SENDER, " sender is not allowed to relay", NULL),
    WORDS(REFUSAL_SENDER, " domain name required for sender", NULL),
    WORDS(REFUSAL_SENDER, " sender domain must exist", NULL),
    WORDS(REFUSAL_SENDER, " unroutable sender address", NULL),
    WORDS(REFUSAL_SENDER, " sender address rejected", " not owned"),
 /* The message, where the reply names spam or DKIM, too. */
    WORDS(REFUSAL_FORM, " duplicate header", NULL),
    WORDS(REFUSAL_FORM, " rfc 5322", " compliant"),
    WORDS(REFUSAL_FORM, " rfc 2822", " compliant"),
    WORDS(REFUSAL_FORM, " rfc compliant", NULL),
    WORDS(REFUSAL_FORM, " encoded word syntax", NULL),
    WORDS(REFUSAL_FORM, " disallowed header", NULL),
    WORDS(REFUSAL_FORM, " bare linefeed", NULL),
    WORDS(REFUSAL_FORM, " smtplf", NULL),
    WORDS(REFUSAL_FORM, " local address contains", NULL),
    WORDS(REFUSAL_FORM, " multiple", " headers"),
 /* The address of this host. */
    WORDS(REFUSAL_PTR, " ptr record", NULL),
    WORDS(REFUSAL_PTR, " dns ptr", NULL),
    WORDS(REFUSAL_PTR, " reverse dns", NULL),
    WORDS(REFUSAL_PTR, " reverse hostname", NULL),
    WORDS(REFUSAL_PTR, " cannot find your reverse", NULL),
    WORDS(REFUSAL_PTR, " rdns", NULL),
    WORDS(REFUSAL_PTR, " reverse lookup", NULL),
    WORDS(REFUSAL_PTR, " access denied ip name lookup failed", NULL),
    WORDS(REFUSAL_PTR, " unresolvable relay host name", NULL),
    WORDS(REFUSAL_PTR, " unverifyable sending ip", NULL),
    WORDS(REFUSAL_PTR, " cannot find your hostname", NULL),
    WORDS(REFUSAL_REPUTATION, " rate of unsolicited", NULL),
    WORDS(REFUSAL_AUTH, " unauthenticated", " email"),
    WORDS(REFUSAL_AUTH, " dmarc", NULL),
    WORDS(REFUSAL_AUTH, " spf", " fail"),
    WORDS(REFUSAL_AUTH, " fail", " spf"),
    WORDS(REFUSAL_AUTH, " spf", " not "),
    WORDS(REFUSAL_AUTH, " spf", " invalid"),
    WORDS(REFUSAL_AUTH, " spf policy", NULL),
    WORDS(REFUSAL_AUTH, " invalid spf", NULL),
    WORDS(REFUSAL_AUTH, " bad spf record", NULL),
    WORDS(REFUSAL_AUTH, " spf record", NULL),
    WORDS(REFUSAL_AUTH, " spf settings", NULL),
    WORDS(REFUSAL_AUTH, " spf sender policy framework", NULL),
    WORDS(REFUSAL_AUTH, " not authorized to send", " domain"),
    WORDS(REFUSAL_AUTH, " dkim", NULL),
    WORDS(REFUSAL_REPUTATION, " s3140", NULL),
    WORDS(REFUSAL_REPUTATION, " s3150", NULL),
    WORDS(REFUSAL_REPUTATION, " tss09", NULL),
    WORDS(REFUSAL_REPUTATION, " blocked using", NULL),
    WORDS(REFUSAL_REPUTATION, " block list", NULL),
    WORDS(REFUSAL_REPUTATION, " blocklist", NULL),
    WORDS(REFUSAL_REPUTATION, " blacklist", NULL),
    WORDS(REFUSAL_REPUTATION, " spamhaus", NULL),
    WORDS(REFUSAL_REPUTATION, " spamcop", NULL),
    WORDS(REFUSAL_REPUTATION, " barracuda", NULL),
    WORDS(REFUSAL_REPUTATION, " dnsbl", NULL),
    WORDS(REFUSAL_REPUTATION, " rbl", NULL),
    WORDS(REFUSAL_REPUTATION, " poor reputation", NULL),
    WORDS(REFUSAL_REPUTATION, " bad reputation", NULL),
    WORDS(REFUSAL_REPUTATION, " low reputation", NULL),
    WORDS(REFUSAL_REPUTATION, " reputation", " ip"),
    WORDS(REFUSAL_REPUTATION, " ip", " reputation"),
    WORDS(REFUSAL_REPUTATION, " unsolicited", NULL),
    WORDS(REFUSAL_REPUTATION, " banned sending ip", NULL),
    WORDS(REFUSAL_REPUTATION, " block listed", NULL),
    WORDS(REFUSAL_REPUTATION, " listed at", NULL),
    WORDS(REFUSAL_REPUTATION, " suspected spam ip", NULL),
    WORDS(REFUSAL_REPUTATION, " blocked for spamming", NULL),
    WORDS(REFUSAL_REPUTATION, " too many spams from your ip", NULL),
    WORDS(REFUSAL_REPUTATION, " ipcheck proofpoint", NULL),
    WORDS(REFUSAL_REPUTATION, " tosa rx t online", NULL),
    WORDS(REFUSAL_REPUTATION, " send email directly to our", NULL),
    WORDS(REFUSAL_REPUTATION, " dynamically assigned", NULL),
    WORDS(REFUSAL_REPUTATION, " dynamic ip", NULL),
    WORDS(REFUSAL_REPUTATION, " permanently deferred", NULL),
    WORDS(REFUSAL_REPUTATION, " block for spam", NULL),
    WORDS(REFUSAL_REPUTATION, " blocked for abuse", NULL),
    WORDS(REFUSAL_REPUTATION, " suspected bounce attacks", NULL),
    WORDS(REFUSAL_REPUTATION, " cxbl", NULL),
    WORDS(REFUSAL_REPUTATION, " csi cloudmark", NULL),
    WORDS(REFUSAL_REPUTATION, " blackhole", NULL),
    WORDS(REFUSAL_REPUTATION, " invaluement", NULL),
    WORDS(REFUSAL_REPUTATION, " ip has been", " blocked"),
    WORDS(REFUSAL_REPUTATION, " access from ip address", NULL),
    WORDS(REFUSAL_REPUTATION, " bad sender ip", NULL),
    WORDS(REFUSAL_REPUTATION, " refused see http", NULL),
    WORDS(REFUSAL_REPUTATION, " zombied", NULL),
    WORDS(REFUSAL_REPUTATION, " is blocked by", NULL),
    WORDS(REFUSAL_REPUTATION, " mail server at", " is blocked"),
    WORDS(REFUSAL_REPUTATION, " no access from mail server", NULL),
    WORDS(REFUSAL_REPUTATION, " accepting mail from your ip", NULL),
    WORDS(REFUSAL_REPUTATION, " smtp server of your isp", NULL),
    WORDS(REFUSAL_REPUTATION, " open proxy", NULL),
    WORDS(REFUSAL_REPUTATION, " listed as abusive", NULL),
    WORDS(REFUSAL_REPUTATION, " suspiciously like spammer", NULL),
    WORDS(REFUSAL_CONTENT, " virus", NULL),
    WORDS(REFUSAL_CONTENT, " malware", NULL),
    WORDS(REFUSAL_CONTENT, " spam", NULL),
    WORDS(REFUSAL_CONTENT, " attachment", NULL),
    WORDS(REFUSAL_CONTENT, " content", " security"),
    WORDS(REFUSAL_CONTENT, " content denied", NULL),
    WORDS(REFUSAL_CONTENT, " content examination", NULL),
    WORDS(REFUSAL_CONTENT, " rejected due to security policies", NULL),
    WORDS(REFUSAL_CONTENT, " content filter rejection", NULL),
    WORDS(REFUSAL_CONTENT, " content rejected", NULL),
    WORDS(REFUSAL_CONTENT, " unacceptable content", NULL),
    WORDS(REFUSAL_CONTENT, " banned content", NULL),
    WORDS(REFUSAL_CONTENT, " bulk advertising", NULL),
    WORDS(REFUSAL_CONTENT, " bulk mail", NULL),
    WORDS(REFUSAL_CONTENT, " uribl", NULL),
    WORDS(REFUSAL_CONTENT, " recurrent pattern", NULL),
    {REFUSAL_CONTENT, 5, 0,   0, 0, 0, YAHOO,     " ph01",                       NULL},
    {REFUSAL_CONTENT, 0, 552, 7, 0, 0, GOOGLE,    NULL,                          NULL},
    WORDS(REFUSAL_FORM, " valid from", NULL),
    WORDS(REFUSAL_FORM, " missing a valid", " from"),
    WORDS(REFUSAL_FORM, " headers fail syntax", NULL),
    WORDS(REFUSAL_FORM, " missing final", NULL),
    WORDS(REFUSAL_FORM, " message id", NULL),
    WORDS(REFUSAL_FORM, " multiple from", NULL),
    WORDS(REFUSAL_RELAY, " relay access denied", NULL),
    WORDS(REFUSAL_RELAY, " relay denied", NULL),
    WORDS(REFUSAL_RELAY, " relay not", NULL),
    WORDS(REFUSAL_RELAY, " rcpthosts", NULL),
    WORDS(REFUSAL_RELAY, " relaying", NULL),
    WORDS(REFUSAL_RELAY, " not permitted to relay", NULL),
    WORDS(REFUSAL_RELAY, " unable to relay", NULL),
    WORDS(REFUSAL_RELAY, " credentials for relay", NULL),
    WORDS(REFUSAL_RELAY, " unauthorized ip address", NULL),
    WORDS(REFUSAL_RELAY, " as a relay", NULL),
    WORDS(REFUSAL_RELAY, " cannot deliver mail for", NULL),
    WORDS(REFUSAL_RELAY, " delivery is not allowed to this address", NULL),
    WORDS(REFUSAL_RELAY, " relay rejected", NULL),
    WORDS(REFUSAL_RELAY, " insecure mail relay", NULL),
    WORDS(REFUSAL_RELAY, " when attempting to send to a non local", NULL),
    WORDS(REFUSAL_RELAY, " allowed to relay through", NULL),
    WORDS(REFUSAL_RELAY, " not an open relay", NULL),
    WORDS(REFUSAL_RELAY, " not configured to relay", NULL),
    WORDS(REFUSAL_SENDER, " sender address rejected", NULL),
 /* Not where relaying is denied without it. */
    WORDS(REFUSAL_LOGIN, " authentication required", NULL),
    WORDS(REFUSAL_LOGIN, " authentication is required", NULL),
    {REFUSAL_LOGIN,   5, 0,   0, 0, 0, ANY,       " authentication failure",     NULL},
    WORDS(REFUSAL_LOGIN, " authentication turned on", NULL),
 /* The mailbox. */
    WORDS(REFUSAL_FULL, " over quota", NULL),
    WORDS(REFUSAL_FULL, " overquota", NULL),
    WORDS(REFUSAL_FULL, " out of storage", NULL),
    WORDS(REFUSAL_FULL, " account storage limit", NULL),
    WORDS(REFUSAL_FULL, " exceeding their quota", NULL),
    WORDS(REFUSAL_FULL, " mailbox", " enough space"),
    WORDS(REFUSAL_FULL, " exceeded storage allocation", NULL),
    WORDS(REFUSAL_FULL, " mailbox quota", NULL),
    WORDS(REFUSAL_FULL, " full mailbox", NULL),
    WORDS(REFUSAL_FULL, " mailbox exceeded", NULL),
    WORDS(REFUSAL_FULL, " mailbox has exceeded", NULL),
    WORDS(REFUSAL_FULL, " mailbox size limit", NULL),
    WORDS(REFUSAL_FULL, " mailfolder is full", NULL),
    WORDS(REFUSAL_FULL, " enough storage space", NULL),
    WORDS(REFUSAL_FULL, " quota violation", NULL),
    WORDS(REFUSAL_FULL, " disk quota", NULL),
    WORDS(REFUSAL_FULL, " space has been used up", NULL),
    WORDS(REFUSAL_FULL, " exceeded quota", NULL),
    WORDS(REFUSAL_FULL, " too many messages on the server", NULL),
    WORDS(REFUSAL_FULL, " exhausted allowed storage", NULL),
    WORDS(REFUSAL_FULL, " mailbox", " full"),
    WORDS(REFUSAL_FULL, " quota", " exceed"),
    WORDS(REFUSAL_TOO_BIG, " message", " too large"),
    WORDS(REFUSAL_TOO_BIG, " message", " too big"),
    WORDS(REFUSAL_TOO_BIG, " message size", " exceed"),
    WORDS(REFUSAL_TOO_BIG, " email size", " exceed"),
    WORDS(REFUSAL_TOO_BIG, " size limit", NULL),
    WORDS(REFUSAL_TOO_BIG, " message is too long", NULL),
    WORDS(REFUSAL_TOO_BIG, " message size violation", NULL),
    WORDS(REFUSAL_TOO_BIG, " maximum inbound message size", NULL),
    WORDS(REFUSAL_TOO_BIG, " header size exceeds", NULL),
    WORDS(REFUSAL_TOO_BIG, " message length exceeds", NULL),
    WORDS(REFUSAL_NO_DOMAIN, " domain not found", NULL),
    WORDS(REFUSAL_NO_DOMAIN, " domain", " does not exist"),
    WORDS(REFUSAL_NO_USER, " user unknown", NULL),
    WORDS(REFUSAL_NO_USER, " unknown user", NULL),
    WORDS(REFUSAL_NO_USER, " no such", NULL),
    WORDS(REFUSAL_NO_USER, " user not found", NULL),
    WORDS(REFUSAL_NO_USER, " does not exist", NULL),
    WORDS(REFUSAL_NO_USER, " doesn t exist", NULL),
    WORDS(REFUSAL_NO_USER, " doesn t have", " account"),
    WORDS(REFUSAL_NO_USER, " not a valid", " mailbox"),
    WORDS(REFUSAL_NO_USER, " invalid recipient", NULL),
    WORDS(REFUSAL_NO_USER, " recipient not found", NULL),
    WORDS(REFUSAL_NO_USER, " recipient unknown", NULL),
    WORDS(REFUSAL_NO_USER, " unknown recipient", NULL),
    WORDS(REFUSAL_NO_USER, " mailbox not found", NULL),
    WORDS(REFUSAL_NO_USER, " no mailbox", NULL),
    WORDS(REFUSAL_NO_USER, " mailbox", " disabled"),
    WORDS(REFUSAL_NO_USER, " account", " disabled"),
    WORDS(REFUSAL_NO_USER, " deactivated mailbox", NULL),
    WORDS(REFUSAL_NO_USER, " user suspended", NULL),
    WORDS(REFUSAL_NO_USER, " unknown local part", NULL),
    WORDS(REFUSAL_NO_USER, " unrouteable address", NULL),
    WORDS(REFUSAL_NO_USER, " no longer on server", NULL),
    WORDS(REFUSAL_NO_USER, " archived recipient", NULL),
    WORDS(REFUSAL_NO_USER, " recipient account isblocked", NULL),
    WORDS(REFUSAL_NO_USER, " address unknown", NULL),
    WORDS(REFUSAL_NO_USER, " addresses were unknown", NULL),
    WORDS(REFUSAL_NO_USER, " email address could not be found", NULL),
    WORDS(REFUSAL_NO_USER, " invalid mailbox", NULL),
    WORDS(REFUSAL_NO_USER, " mailbox invalid", NULL),
    WORDS(REFUSAL_NO_USER, " is not a known user", NULL),
    WORDS(REFUSAL_NO_USER, " not an active address", NULL),
    WORDS(REFUSAL_NO_USER, " mailbox is inactive", NULL),
    WORDS(REFUSAL_NO_USER, " mailbox not present", NULL),
    WORDS(REFUSAL_NO_USER, " no account by that name", NULL),
    WORDS(REFUSAL_NO_USER, " account unavailable", NULL),
    WORDS(REFUSAL_NO_USER, " no valid recipients", NULL),
    WORDS(REFUSAL_NO_USER, " nonexistent user", NULL),
    WORDS(REFUSAL_NO_USER, " non existent user", NULL),
    WORDS(REFUSAL_NO_USER, " not a valid user", NULL),
    WORDS(REFUSAL_NO_USER, " not a local address", NULL),
    WORDS(REFUSAL_NO_USER, " recipient", " was not found"),
    WORDS(REFUSAL_NO_USER, " rejected invalid user", NULL),
    WORDS(REFUSAL_NO_USER, " recipient not exist", NULL),
    WORDS(REFUSAL_NO_USER, " badrcptto", NULL),
    WORDS(REFUSAL_NO_USER, " email name is not found", NULL),
    WORDS(REFUSAL_NO_USER, " no one at this address", NULL),
    WORDS(REFUSAL_NO_USER, " no longer accepts mail", NULL),
    WORDS(REFUSAL_NO_USER, " wrong or no longer valid", NULL),
    WORDS(REFUSAL_NO_USER, " unknown email address", NULL),
    WORDS(REFUSAL_NO_USER, " unknown mailbox", NULL),
    WORDS(REFUSAL_NO_USER, " user", " was not found"),
    WORDS(REFUSAL_NO_USER, " user not active", NULL),
    WORDS(REFUSAL_NO_USER, " user not known", NULL),
 /* RFC 5321 says it of a busy mailbox, too, with 450. */
    {REFUSAL_NO_USER, 5, 0,   0, 0, 0, ANY,       " mailbox unavailable",        NULL},
};

struct reply {
    struct text host;
    int code, subject, detail;
    struct reply_words words;
};

/* "5.7.26"; none: both -1. */
static void
read_enhanced(struct text word, struct reply *r)
{
    struct text part;
    uint64_t class, subject, detail;
    r->subject = r->detail = -1;
    if (text_cut(&word, '.', &part) && text_number(part, 5, &class) && class >= 2 &&
        text_cut(&word, '.', &part) && text_number(part, 999, &subject) &&
        text_number(word, 999, &detail)) {
        r->subject = (int)subject;
        r->detail = (int)detail;
    }
}

/* qmail and others write "(#5.1.1)" behind their text. */
static void
find_enhanced(struct text t, struct reply *r)
{
    struct text word;
    size_t at = text_find(t, '#');
    struct text rest = t;
    read_enhanced(text_word(&rest, " ", &word) ? word : TEXT(""), r);
    if (r->subject >= 0 || at == TEXT_NONE)
        return;
    rest = text_after(t, at + 1);
    if (text_word(&rest, " )", &word))
        read_enhanced(word, r);
}

/* code: 0: the first word of the reply. False: it refuses nothing. */
static bool
refusal_parse(const struct outcome_sentence *said, int code, struct reply *r)
{
    struct text rest = said->reply, word;
    uint64_t first;
    if (!text_word(&rest, " ", &word) || !text_number(word, 599, &first) || first < 400)
        return false;
    r->host = said->host;
    r->code = code != 0 ? code : (int)first;
    find_enhanced(rest, r);
    reply_words_make(&r->words, said->reply);
    return true;
}

static bool
refusal_of_outcome(const struct outcome *o, struct reply *r)
{
    struct outcome_sentence said;
    return outcome_reply_read(o, &said) && refusal_parse(&said, o->code, r);
}

static bool
refusal_of_text(const char *text, struct reply *r)
{
    struct outcome_sentence said;
    return outcome_sentence_read(text_from(text), &said) && refusal_parse(&said, 0, r);
}

static enum provider
provider_of(struct text host)
{
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        struct text suffix = text_from(hosts[i].suffix);
        if (host.length > suffix.length &&
            text_equal_nocase(text_after(host, host.length - suffix.length), suffix))
            return hosts[i].provider;
    }
    return ANY;
}

const char *
refusal_receiver(struct text host)
{
    enum provider provider = provider_of(host);
    return provider == ANY ? NULL : provider_names[provider];
}

static bool
row_matches(const struct row *row, const struct reply *r, enum provider provider)
{
    return (row->family == 0 || row->family == r->code / 100) &&
           (row->code == 0 || row->code == r->code) &&
           (row->subject == 0 || (row->subject == r->subject &&
                                  r->detail >= row->from && r->detail <= row->to)) &&
           (row->provider == ANY || row->provider == provider) &&
           (row->phrase == NULL || reply_words_have(&r->words, row->phrase, row->then));
}

static enum refusal_class
classify(const struct reply *r, enum provider provider)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (row_matches(&rows[i], r, provider))
            return rows[i].class;
    return REFUSAL_OTHER;
}

enum refusal_class
refusal_classify(const struct outcome *outcome)
{
    struct reply r;
    return refusal_of_outcome(outcome, &r) ? classify(&r, provider_of(r.host))
                                           : REFUSAL_OTHER;
}

enum refusal_class
refusal_classify_text(const char *text)
{
    struct reply r;
    return refusal_of_text(text, &r) ? classify(&r, provider_of(r.host))
                                     : REFUSAL_OTHER;
}

bool
refusal_is_of_ipv6(const struct outcome *outcome)
{
    struct reply r;
    if (!refusal_of_outcome(outcome, &r))
        return false;
    enum refusal_class class = classify(&r, provider_of(r.host));
    return class == REFUSAL_PTR ||
           (class == REFUSAL_AUTH && reply_words_have(&r.words, " ipv6", NULL));
}

const char *refusal_name(enum refusal_class class)
{
    static const char *const names[REFUSAL_CLASSES] = {
        [REFUSAL_OTHER] = "",
        [REFUSAL_NO_USER] = "no_user",
        [REFUSAL_NO_DOMAIN] = "no_domain",
        [REFUSAL_FULL] = "full",
        [REFUSAL_TOO_BIG] = "too_big",
        [REFUSAL_AUTH] = "auth",
        [REFUSAL_PTR] = "ptr",
        [REFUSAL_REPUTATION] = "reputation",
        [REFUSAL_CONTENT] = "content",
        [REFUSAL_SENDER] = "sender",
        [REFUSAL_LOGIN] = "login",
        [REFUSAL_QUOTA] = "quota",
        [REFUSAL_TLS] = "tls",
        [REFUSAL_FORM] = "form",
        [REFUSAL_RELAY] = "relay",
        [REFUSAL_POLICY] = "policy",
    };
    return names[class];
}

static const char *
login_hint(enum provider provider)
{
    switch (provider) {
    case MICROSOFT:
        return "Microsoft ends logins with a password: SMTP AUTH must be enabled for "
               "the mailbox, with XOAUTH2 (`petrel help oauth`)";
    case GOOGLE:
        return "Google needs an app password or XOAUTH2 (`petrel help oauth`) here, "
               "not "
               "the password of the account";
    case ANY:
    case YAHOO:
    case AMAZON:
        break;
    }
    return "check the user in relay or routes, and its password: `petrel doctor` tries "
           "to log in";
}

/* A format with one %s, for the refusing host. NULL: the reply says it all. */
static const char *hint_format(enum refusal_class class)
{
    switch (class) {
    case REFUSAL_NO_USER:
        return "the address is wrong or gone: stop sending to it";
    case REFUSAL_AUTH:
        return "%s wants SPF, DKIM and DMARC that fit the domain in From: "
               "`petrel doctor` says what is missing; or send through a "
               "smarthost that signs";
    case REFUSAL_PTR:
        return "the address of this host needs a PTR record, by its hoster, whose name "
               "leads back to it; if IPv6 alone lacks it, set smtp_family = ipv4";
    case REFUSAL_REPUTATION:
        return "the address of this host is on a list of %s: the reply says where; a "
               "smarthost has another address";
    case REFUSAL_SENDER:
        return "%s accepts only senders of the account that logs in: rewrite replaces "
               "others";
    case REFUSAL_QUOTA:
        return "the account has reached its limit at %s: quota= of the route keeps "
               "mail below it";
    case REFUSAL_FORM:
        return "the message is malformed: the program that made it must be corrected";
    case REFUSAL_RELAY:
        return "%s does not relay for this host: a login may be missing, or the route "
               "is wrong";
    case REFUSAL_POLICY:
        return "%s has blocked the account: its administrator must unblock it";
    case REFUSAL_OTHER:
    case REFUSAL_NO_DOMAIN:
    case REFUSAL_FULL:
    case REFUSAL_TOO_BIG:
    case REFUSAL_CONTENT:
    case REFUSAL_LOGIN:
    case REFUSAL_TLS:
    case REFUSAL_CLASSES:
        break;
    }
    return NULL;
}

static bool
refusal_advise(const struct reply *r, char out[REFUSAL_HINT_MAX])
{
    enum provider provider = provider_of(r->host);
    enum refusal_class class = classify(r, provider);
    const char *hint = class == REFUSAL_LOGIN ? login_hint(provider) : NULL;
    const char *format = hint_format(class), *hole = NULL;
    if (hint == NULL && format == NULL)
        return false;
    if (hint == NULL && (hole = strstr(format, "%s")) == NULL)
        hint = format;
    if (hint != NULL)
        snprintf(out, REFUSAL_HINT_MAX, "%s", hint);
    else
        snprintf(out, REFUSAL_HINT_MAX, "%.*s%s%s", (int)(hole - format), format,
                 provider_names[provider], hole + 2);
    return true;
}

bool
refusal_hint(const struct outcome *outcome, char out[REFUSAL_HINT_MAX])
{
    struct reply r;
    return refusal_of_outcome(outcome, &r) && refusal_advise(&r, out);
}

bool
refusal_hint_text(const char *text, char out[REFUSAL_HINT_MAX])
{
    struct reply r;
    return refusal_of_text(text, &r) && refusal_advise(&r, out);
}
