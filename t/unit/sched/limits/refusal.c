/* Classes of refusals: replies as receivers and smarthosts give them, replies that must
 * not be taken for another class, and the hints. */
#include "sched/limits/refusal.h"

#include "t/support/tap.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GMAIL   "gmail-smtp-in.l.google.com"
#define SUBMIT  "smtp.gmail.com"
#define OUTLOOK "contoso-com.mail.protection.outlook.com"
#define HOTMAIL "hotmail-com.olc.protection.outlook.com"
#define OFFICE  "smtp.office365.com"
#define YAHOO   "mta5.am0.yahoodns.net"
#define SES     "email-smtp.eu-west-1.amazonaws.com"
#define OTHER   "mx.example.net"

static const struct {
    const char *class, *host, *reply;
} replies[] = {
    /* The recipient. */
    {"no_user", GMAIL, "550 5.1.1 The email account that you tried to reach does not exist. Please try double-checking the recipient's email address for typos"},
    {"no_user", GMAIL, "550 5.2.1 The email account that you tried to reach is disabled."},
    {"no_user", OUTLOOK, "550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup"},
    {"no_user", HOTMAIL, "550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302)."},
    {"no_user", YAHOO, "554 delivery error: dd This user doesn't have a yahoo.com account (a@yahoo.com) [0]"},
    {"no_user", YAHOO, "554 delivery error: dd Not a valid recipient - no such mailbox"},
    {"no_user", OTHER, "550 5.1.1 <a@b.example>: Recipient address rejected: User unknown in local recipient table"},
    {"no_user", OTHER, "550 5.1.1 <a@b.example>: Recipient address rejected: User unknown in virtual mailbox table"},
    {"no_user", OTHER, "550 No such user here"},
    {"no_user", OTHER, "550 unknown user"},
    {"no_user", OTHER, "550 Requested action not taken: mailbox unavailable"},
    {"no_user", OTHER, "550 5.1.1 unknown or illegal alias: a@b.example"},
    {"no_user", OTHER, "550 Invalid recipient <a@b.example>"},
    {"no_user", OTHER, "553 5.3.0 <a@b.example>... No such user here"},
    {"no_user", OTHER, "550 5.0.0 Mailbox not found"},
    {"no_user", OTHER, "550 user not found"},
    {"no_user", OTHER, "554 5.7.1 The mailbox of this customer is disabled"},
    {"no_domain", OTHER, "550 5.1.2 Bad destination system address"},
    {"no_domain", OUTLOOK, "550 5.4.310 DNS domain contoso.example does not exist"},
    {"no_domain", OTHER, "556 5.1.10 Recipient address has a null MX"},
    {"full", GMAIL, "452 4.2.2 The email account that you tried to reach is over quota."},
    {"full", GMAIL, "552 5.2.2 The recipient's inbox is out of storage space and inactive."},
    {"full", OUTLOOK, "554 5.2.2 mailbox full"},
    {"full", OTHER, "552 Mailbox is full"},
    {"full", OTHER, "452 4.0.0 user is over quota"},
    {"full", OTHER, "552 5.0.0 Disk quota exceeded"},
    {"too_big", GMAIL, "552 5.3.4 Your message exceeded Google's message size limits."},
    {"too_big", OUTLOOK, "552 5.3.4 Message size exceeds fixed maximum message size"},
    {"too_big", OUTLOOK, "550 5.2.3 RESOLVER.RST.RecipSizeLimit; message too large for this recipient"},
    {"too_big", OTHER, "552 Message size exceeds maximum permitted"},
    {"too_big", OTHER, "552 message too large"},
    /* Whether the mail is proven to be from its domain. */
    {"auth", GMAIL, "550 5.7.26 This mail has been blocked because the sender is unauthenticated. Gmail requires all senders to authenticate with either SPF or DKIM."},
    {"auth", GMAIL, "550 5.7.26 Unauthenticated email from b.example is not accepted due to domain's DMARC policy."},
    {"auth", GMAIL, "421 4.7.26 Your email has been rate limited because it is unauthenticated."},
    {"auth", GMAIL, "421 4.7.27 Your email has been rate limited because SPF authentication didn't pass for this message."},
    {"auth", GMAIL, "550 5.7.27 Your email has been blocked because SPF authentication didn't pass."},
    {"auth", GMAIL, "421 4.7.30 Your email has been rate limited because DKIM authentication didn't pass for this message."},
    {"auth", GMAIL, "550 5.7.30 Your email has been blocked because DKIM authentication didn't pass."},
    {"auth", GMAIL, "421 4.7.32 Your email has been rate limited because the From: header (RFC5322) in this message isn't aligned with either the authenticated SPF or DKIM organizational domain."},
    {"auth", GMAIL, "421 4.7.40 Your email has been rate limited. The domain in the From: header does not have a DMARC record"},
    {"auth", HOTMAIL, "550 5.7.515 Access denied, sending domain B.EXAMPLE doesn't meet the required authentication level."},
    {"auth", OUTLOOK, "550 5.7.509 Access denied, sending domain b.example does not pass DMARC verification and has a DMARC policy of reject."},
    {"auth", OUTLOOK, "550 5.7.23 The message was rejected because of Sender Policy Framework violation"},
    {"auth", YAHOO, "554 5.7.9 Message not accepted for policy reasons. See https://senders.yahooinc.com/error-codes"},
    {"auth", OTHER, "550 5.7.1 SPF check failed"},
    {"auth", OTHER, "550 5.7.1 Email rejected per DMARC policy for b.example"},
    {"auth", OTHER, "554 5.7.5 Permanent error evaluating DMARC policy"},
    {"auth", OTHER, "550 5.7.20 No passing DKIM signature found"},
    {"auth", OTHER, "550 192.0.2.1 is not allowed to send mail from b.example: SPF does not permit it, not authorized"},
    /* The address of the client. */
    {"ptr", GMAIL, "550 5.7.25 The IP address sending this message does not have a PTR record setup, or the corresponding forward DNS entry does not point to the sending IP."},
    {"ptr", GMAIL, "421 4.7.23 The sending IP address for this message doesn't have a PTR record"},
    {"ptr", GMAIL, "550 5.7.1 [2001:db8::1] Our system has detected that this message does not meet IPv6 sending guidelines regarding PTR records and authentication."},
    {"ptr", OUTLOOK, "550 5.7.25 Service unavailable, sending IPv6 address 2001:db8::1 must have reverse DNS record"},
    {"ptr", OUTLOOK, "550 5.7.510 Access denied, contoso.example does not accept email over IPv6"},
    {"ptr", OUTLOOK, "450 4.7.26 Service does not accept messages sent over IPv6 unless they pass either SPF or DKIM validation; email over IPv6 must pass"},
    {"ptr", OTHER, "450 4.7.1 Client host rejected: cannot find your reverse hostname, [192.0.2.1]"},
    {"ptr", OTHER, "550 5.7.1 Client host rejected: no reverse DNS"},
    {"ptr", OTHER, "554 5.7.1 Fix reverse DNS for 192.0.2.1"},
    {"ptr", OTHER, "554 mx.example.net Bad DNS PTR resource record."},
    {"reputation", OTHER, "554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using zen.spamhaus.org; https://www.spamhaus.org/query/ip/192.0.2.1"},
    {"reputation", HOTMAIL, "550 5.7.1 Unfortunately, messages from [192.0.2.1] weren't sent. Please contact your Internet service provider since part of their network is on our block list (S3140)."},
    {"reputation", OUTLOOK, "550 5.7.606 Access denied, banned sending IP [192.0.2.1]"},
    {"reputation", OUTLOOK, "550 5.7.511 Access denied, banned sender[192.0.2.1]"},
    {"reputation", OUTLOOK, "451 4.7.650 The mail server [192.0.2.1] has been temporarily rate limited due to IP reputation."},
    {"reputation", GMAIL, "550 5.7.1 Our system has detected that this message is likely unsolicited mail."},
    {"reputation", GMAIL, "421 4.7.0 This message is suspicious due to the very low reputation of the sending IP address."},
    {"reputation", YAHOO, "553 5.7.1 [TSS09] All messages from 192.0.2.1 will be permanently deferred; Retrying will NOT succeed."},
    {"reputation", OTHER, "554 Your access to this mail system has been rejected due to the sending MTA's poor reputation."},
    {"reputation", OTHER, "550 5.7.1 blacklisted by Barracuda Reputation"},
    {"reputation", OTHER, "554 5.7.1 rejected: listed in dnsbl.example"},
    {"content", GMAIL, "552 5.7.0 This message was blocked because its content presents a potential security issue."},
    {"content", OTHER, "554 5.7.1 This message has been rejected: it looks like spam"},
    {"content", OTHER, "550 5.7.1 Message contains a virus (Eicar-Test)"},
    {"content", OTHER, "552 5.7.0 prohibited attachment type"},
    /* The account at a smarthost. */
    {"sender", OFFICE, "550 5.7.60 SMTP; Client does not have permissions to send as this sender"},
    {"sender", OFFICE, "554 5.2.252 SendAsDenied; alerts@contoso.example not allowed to send as root@b.example"},
    {"sender", SES, "554 Message rejected: Email address is not verified. The following identities failed the check in region EU-WEST-1: root@vps7"},
    {"sender", OTHER, "553 5.7.1 <root@vps7>: Sender address rejected: not owned by user alerts@b.example"},
    {"sender", OTHER, "550 5.7.1 The from address does not match a verified Sender Identity. Mail cannot be sent until this error is resolved."},
    {"sender", OTHER, "553 5.1.8 <root@vps7>: Sender address rejected: Domain not found"},
    {"login", SUBMIT, "535 5.7.8 Username and Password not accepted. Learn more at https://support.google.com/mail/?p=BadCredentials"},
    {"login", SUBMIT, "534 5.7.9 Application-specific password required. Learn more at https://support.google.com/mail/?p=InvalidSecondFactor"},
    {"login", SUBMIT, "530 5.7.0 Authentication Required. Learn more at https://support.google.com/mail/?p=WantAuthError"},
    {"login", OFFICE, "535 5.7.139 Authentication unsuccessful, SmtpClientAuthentication is disabled for the Tenant."},
    {"login", OFFICE, "535 5.7.139 Authentication unsuccessful, basic authentication is disabled."},
    {"login", OFFICE, "530 5.7.57 Client not authenticated to send mail."},
    {"login", OFFICE, "550 5.7.30 Basic authentication is not supported for Client Submission."},
    {"login", OTHER, "535 5.7.8 Error: authentication failed"},
    {"login", OTHER, "530 5.7.0 Authentication required"},
    {"quota", SUBMIT, "550 5.4.5 Daily user sending limit exceeded. For more information on Gmail sending limits go to https://support.google.com/a/answer/166852"},
    {"quota", "smtp-relay.gmail.com", "550 5.7.1 Daily SMTP relay sending limit exceeded for customer."},
    {"quota", SES, "454 Throttling failure: Daily message quota exceeded."},
    {"quota", OTHER, "550 Maximum credits exceeded"},
    {"policy", OFFICE, "550 5.1.8 Access denied, bad outbound sender AS(42004)"},
    /* The session and the message. */
    {"tls", GMAIL, "421 4.7.29 Your email has been rate limited because this message wasn't sent over a TLS connection."},
    {"tls", OTHER, "530 5.7.0 Must issue a STARTTLS command first"},
    {"tls", OTHER, "550 5.7.1 TLS is required by this server"},
    {"form", GMAIL, "550 5.7.1 This message is not RFC 5322 compliant. There are multiple From headers."},
    {"form", OTHER, "550 5.6.0 Lone CR or LF in headers"},
    {"form", GMAIL, "550 5.7.1 Messages missing a valid Message-ID header are not accepted."},
    {"form", GMAIL, "550 5.7.1 Messages missing a valid From header are not accepted."},
    {"relay", OTHER, "554 5.7.1 <a@b.example>: Relay access denied"},
    {"relay", OTHER, "550 5.7.1 Relaying denied"},
    {"relay", "smtp-relay.gmail.com", "550 5.7.1 Invalid credentials for relay [192.0.2.1]."},
    {"relay", OUTLOOK, "550 5.7.64 TenantAttribution; Relay Access Denied"},
    {"relay", OUTLOOK, "550 5.7.54 SMTP; Unable to relay recipient in non-accepted domain"},
    /* No class: what is not known, and what only looks like one. */
    {"", OTHER, "550 5.7.1 not today"},
    {"", OTHER, "451 4.3.0 Temporary lookup failure"},
    {"", OTHER, "450 4.7.1 Greylisted, see http://postgrey.example"},
    {"", OTHER, "550 5.7.1 <spam.dkim.dmarc@ptr-record.example>: Recipient rejected"},
    {"", OTHER, "550 5.7.27 Sender address has null"},
    {"", OTHER, "550 5.7.30 REQUIRETLS support needed"},
    {"", OTHER, "554 transaction failed"},
    {"", OTHER, "421 4.7.0 Try again later"},
    {"", OTHER, "550"},
    {"", OTHER, "550 <unclosed spam"},
};

static const char *
outcome_text(const char *host, const char *reply)
{
    static char text[1000];
    snprintf(text, sizeof(text), "host %s[192.0.2.25] said: %s (in reply to end of DATA command)",
             host, reply);
    return text;
}

TEST(replies)
{
    for (size_t i = 0; i < sizeof(replies) / sizeof(replies[0]); i++)
        is_string(refusal_name(refusal_classify_text(outcome_text(replies[i].host, replies[i].reply))),
                  replies[i].class, replies[i].reply);
}

/* A reply may have any bytes and length; a text of ours is no reply. */
TEST(other_texts)
{
    static const char *const texts[] = {
        "", "connect to mx.example[192.0.2.1]:25: Connection refused",
        "cannot look up user unknown: spam", "host x said: ", "host x said: abc",
        "host said: 550 5.1.1 no such user", "host said: ", "host", "host ", "host  said: ", "host  said: 550 5.1.1", "host x[ said: 999 5.1.1 user unknown",
        "user unknown said: 550 5.1.1 x", "host x said: 250 2.0.0 no such user"};
    char long_text[3000];
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        ok_named(refusal_classify_text(texts[i]) == REFUSAL_OTHER ||
                     strcmp(texts[i], "host  said: 550 5.1.1") == 0,
                 texts[i]);
    strcpy(long_text, "host x said: 550 ");
    memset(long_text + 17, 'x', sizeof(long_text) - 18);
    long_text[sizeof(long_text) - 1] = '\0';
    is_number(refusal_classify_text(long_text), REFUSAL_OTHER, "long");
}

TEST(hints)
{
    static const struct {
        const char *host, *reply, *hint;
    } all[] = {
        {OFFICE, "535 5.7.139 x", "Microsoft ends logins"},
        {SUBMIT, "535 5.7.8 x", "app password"},
        {OTHER, "535 5.7.8 x", "check the user"},
        {OTHER, "535 5.7.8 x", "`petrel doctor` tries to log in"},
        {GMAIL, "550 5.7.26 x", "Google wants SPF, DKIM and DMARC"},
        {OTHER, "550 5.7.1 dmarc", "the receiver wants SPF"},
        {GMAIL, "550 5.7.26 x", "`petrel doctor` says what"},
        {GMAIL, "550 5.7.25 x", "needs a PTR record"},
        {OTHER, "554 5.7.1 blocked using zen.spamhaus.org", "is on a list of the receiver"},
        {SES, "554 Email address is not verified", "Amazon SES accepts only senders"},
        {OTHER, "550 5.1.1 x", "stop sending to it"},
        {OTHER, "550 5.7.1 Relaying denied", "does not relay for this host"},
        {OFFICE, "550 5.1.8 x", "Microsoft has blocked the account"},
        {SUBMIT, "550 5.4.5 x", "its limit at Google"},
        {OTHER, "550 5.6.0 x", "the message is malformed"},
    };
    char hint[REFUSAL_HINT_MAX];
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        ok_named(refusal_hint_text(outcome_text(all[i].host, all[i].reply), hint) &&
                     strstr(hint, all[i].hint) != NULL && strlen(hint) < REFUSAL_HINT_MAX - 1,
                 all[i].hint);
    ok_named(!refusal_hint_text(outcome_text(OTHER, "552 Mailbox is full"), hint), "the reply says it all");
    ok_named(!refusal_hint_text(outcome_text(OTHER, "550 5.7.1 not today"), hint), "nothing is known");
    ok_named(!refusal_hint_text("lost connection", hint), "no reply");
}

/* An outcome has the host and the code beside its words, whatever those say. */
TEST(outcomes)
{
    char hint[REFUSAL_HINT_MAX];
    struct outcome o = outcome_make(VERDICT_FAILED, BLAME_MESSAGE, 535, "5.7.8", "%s",
                                    "host x[192.0.2.1] said: 535 5.7.8 no (in reply to AUTH command)");
    is_number(refusal_classify(&o), REFUSAL_LOGIN, "by its code");
    ok_named(refusal_hint(&o, hint) && strstr(hint, "check the user") != NULL, "an unknown host");
    strcpy(o.remote, OFFICE "[192.0.2.1]:587");
    ok_named(refusal_hint(&o, hint) && strstr(hint, "Microsoft") != NULL, "the host that has answered");
    o.code = 0;
    is_number(refusal_classify(&o), REFUSAL_OTHER, "no reply");
    ok_named(!refusal_hint(&o, hint), "and no hint");
}

static bool
is_of_ipv6(int code, const char *text)
{
    struct outcome o = outcome_make(VERDICT_DEFERRED, BLAME_SITE, code, "4.0.0", "%s", text);
    return refusal_is_of_ipv6(&o);
}

/* Those that IPv4 may avoid. */
TEST(of_ipv6)
{
    static const struct {
        bool is_so;
        const char *host, *reply;
    } all[] = {
        {true, GMAIL, "550 5.7.25 x"},
        {true, GMAIL, "421 4.7.23 x"},
        {true, OUTLOOK, "550 5.7.510 x"},
        {true, OUTLOOK, "450 4.7.26 Service does not accept messages sent over IPv6 unless they pass SPF or DKIM"},
        {true, OTHER, "550 5.7.1 no SPF: not accepted over IPv6"},
        {false, GMAIL, "550 5.7.26 unauthenticated"},
        {false, OTHER, "550 5.7.1 spam over IPv6"},
        {false, OTHER, "550 5.1.1 User unknown over IPv6"},
        {false, OTHER, "550 5.7.1 <ipv6@b.example>: SPF fail"},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        is_number(is_of_ipv6(atoi(all[i].reply), outcome_text(all[i].host, all[i].reply)), all[i].is_so, all[i].reply);
    ok_named(!is_of_ipv6(0, "connect to mx[::1]:25: no PTR record over IPv6"), "no reply");
}
