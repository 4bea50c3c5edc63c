/* Reports of many systems, read: shapes from public documentation, texts our own. Each
 * shape is tried with several reasons and in several forms of transport. */
#include "mime/report/reading.h"

#include "base/crypto/base64.h"
#include "t/support/tap.h"

static const char mark[] = "bounce+";
#define MARK  "01JD3ZK5Q89F3K2C7AABCDEF1234567890"
#define STAMP "X-Test-Return"

/* --- Reasons ------------------------------------------------------------------------ */

static const struct reason {
    const char *code, *status, *words;
} reasons[] = {
    {"550", "5.1.1", "User unknown in virtual mailbox table"},
    {"550", "5.1.10", "RESOLVER.ADR.RecipientNotFound; Recipient not found by SMTP address lookup"},
    {"552", "5.2.2", "The mailbox is full and over quota"},
    {"554", "5.7.1", "Message was refused as spam by content"},
    {"550", "5.2.1", "The account is disabled"},
    {"550", "5.4.4", "Name or service not known for this host"},
    {"451", "4.4.7", "Message expired, connection to 192.0.2.25 timed out"},
};

/* --- Shapes -------------------------------------------------------------------------
 * {to} {code} {status} {words}, {mark}: of our sender; {headers}: of the message that
 * came back; {status-part}: of Postfix's form. */

#define RETURNED                                                                         \
    "Return-Path: <bounce+" MARK "@shop.test>\n"                                         \
    "Received: from shop.test (shop.test [192.0.2.1])\n by mx.far.test; Sat, 21 Nov 2026 03:05:08 +0000\n" \
    STAMP ": am9lQGIudGVzdA.\n ABCDEF\n"                                                  \
    "From: Shop <news@shop.test>\nTo: <{to}>\nSubject: offers\n"                          \
    "Message-ID: <1@shop.test>\nMIME-Version: 1.0\nContent-Type: text/plain\n"

#define DSN_HEAD(from, subject)                                                          \
    "From: " from "\nTo: bounce+" MARK "@shop.test\nSubject: " subject "\n"              \
    "Date: Sat, 21 Nov 2026 03:05:08 +0000\nMIME-Version: 1.0\n"
#define DSN_TYPE                                                                         \
    "Content-Type: multipart/report; report-type=delivery-status; boundary=\"=_b.1\"\n\n"
#define FIELDS                                                                           \
    "Reporting-MTA: dns; mx.far.test\nArrival-Date: Sat, 21 Nov 2026 03:05:08 +0000\n\n" \
    "Final-Recipient: rfc822; {to}\nAction: {action}\nStatus: {status}\n"                \
    "Remote-MTA: dns; mx.b.test\nDiagnostic-Code: smtp; {code} {status} {words}\n"

enum exact { EXACT, FAMILY };

static const struct shape {
    const char *system;
    enum exact exact;
    bool delays; /* says so with 4xx: Action delayed */
    const char *text;
} shapes[] = {
    {"Postfix", EXACT, true,
     DSN_HEAD("MAILER-DAEMON@mx.far.test (Mail Delivery System)", "Undelivered Mail Returned to Sender")
     "Auto-Submitted: auto-replied\n" DSN_TYPE
     "This is a MIME-encapsulated message.\n\n--=_b.1\nContent-Description: Notification\nContent-Type: text/plain; charset=us-ascii\n\n"
     "This is the mail system at host mx.far.test.\n\nI'm sorry to have to inform you that your message could not\nbe delivered to one or more recipients.\n\n"
     "<{to}>: host mx.b.test[192.0.2.7] said: {code} {status} {words} (in reply to RCPT TO command)\n\n"
     "--=_b.1\nContent-Type: message/delivery-status\n\n" FIELDS
     "\n--=_b.1\nContent-Description: Undelivered Message\nContent-Type: message/rfc822\n\n" RETURNED "\nhello\n--=_b.1--\n"},
    {"Postfix, header only", EXACT, true,
     DSN_HEAD("MAILER-DAEMON (Mail Delivery System)", "Undelivered Mail Returned to Sender") DSN_TYPE
     "--=_b.1\nContent-Type: text/plain\n\nThis is the mail system at host mx.far.test.\n\n--=_b.1\n"
     "Content-Type: message/delivery-status\n\nReporting-MTA: dns; mx.far.test\nX-Postfix-Queue-ID: 4Fg\nX-Postfix-Sender: rfc822; bounce+" MARK "@shop.test\n\n"
     "Final-Recipient: rfc822; {to}\nOriginal-Recipient: rfc822;{to}\nAction: {action}\nStatus: {status}\nDiagnostic-Code: smtp; {code} {status} {words}\n"
     "\n--=_b.1\nContent-Type: text/rfc822-headers\n\n" RETURNED "\n--=_b.1--\n"},
    {"Zimbra: Postfix's form, utf-8", EXACT, true,
     DSN_HEAD("MAILER-DAEMON@zimbra.far.test", "Undelivered Mail Returned to Sender")
     "Content-Type: multipart/report; report-type=delivery-status;\n\tboundary=\"=_b.1\"\n\n--=_b.1\n"
     "Content-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable\n\nThis is the mail system at host zimbra.far.test.\n=\n\n--=_b.1\n"
     "Content-Type: message/global-delivery-status\n\nReporting-MTA: dns; zimbra.far.test\n\nOriginal-Recipient: utf-8; {to}\nFinal-Recipient: utf-8; {to}\nAction: {action}\nStatus: {status}\n"
     "Diagnostic-Code: smtp; {code} {status}\n {words}\n\n--=_b.1\nContent-Type: message/global-headers\n\n" RETURNED "\n--=_b.1--\n"},
    {"Exim, with a status part", EXACT, true,
     DSN_HEAD("Mail Delivery System <Mailer-Daemon@far.test>", "Mail delivery failed: returning message to sender")
     "X-Failed-Recipients: {to}\nAuto-Submitted: auto-replied\n" DSN_TYPE
     "--=_b.1\nContent-type: text/plain; charset=us-ascii\n\nThis message was created automatically by mail delivery software.\n\n"
     "A message that you sent could not be delivered to one or more of its\nrecipients. This is a permanent error. The following address(es) failed:\n\n"
     "  {to}\n    host mx.b.test [192.0.2.7]\n    SMTP error from remote mail server after RCPT TO:<{to}>:\n    {code} {status} {words}\n\n--=_b.1\n"
     "Content-type: message/delivery-status\n\nReporting-MTA: dns; far.test\n\nAction: {action}\nFinal-Recipient: rfc822;{to}\nStatus: {status}\nRemote-MTA: dns; mx.b.test\nDiagnostic-Code: smtp; {code} {status} {words}\n\n"
     "--=_b.1\nContent-type: message/rfc822\n\n" RETURNED "\nhello\n--=_b.1--\n"},
    {"Exim, text only", EXACT, false,
     DSN_HEAD("Mail Delivery System <Mailer-Daemon@far.test>", "Mail delivery failed: returning message to sender")
     "X-Failed-Recipients: {to}\nAuto-Submitted: auto-replied\n\n"
     "This message was created automatically by mail delivery software.\n\nA message that you sent could not be delivered to one or more of its\n"
     "recipients. This is a permanent error. The following address(es) failed:\n\n  {to}\n    SMTP error from remote mail server after RCPT TO:<{to}>:\n"
     "    host mx.b.test [192.0.2.7]: {code} {status} {words}\n\n------ This is a copy of the message, including all the headers. ------\n\n" RETURNED "\nhello other@c.test\n"},
    {"qmail", EXACT, false,
     "From: MAILER-DAEMON@far.test\nTo: bounce+" MARK "@shop.test\nSubject: failure notice\n\n"
     "Hi. This is the qmail-send program at far.test.\nI'm afraid I wasn't able to deliver your message to the following addresses.\n"
     "This is a permanent error; I've given up. Sorry it didn't work out.\n\n<{to}>:\n192.0.2.7 does not like recipient.\nRemote host said: {code} {status} {words}\nGiving up on 192.0.2.7.\n\n"
     "--- Below this line is a copy of the message.\n\n" RETURNED "\nhello other@c.test\n"},
    {"qmail, local words", FAMILY, false,
     "From: MAILER-DAEMON@far.test\nTo: bounce+" MARK "@shop.test\nSubject: failure notice\n\n"
     "Hi. This is the qmail-send program at far.test.\nI'm afraid I wasn't able to deliver your message to the following addresses.\n\n"
     "<{to}>:\nSorry, no mailbox here by that name. (#{status})\n\n--- Below this line is a copy of the message.\n\n" RETURNED "\n"},
    {"Exchange 2016", EXACT, true,
     DSN_HEAD("Microsoft Outlook <MicrosoftExchange329e71ec88ae4615bbc36ab6ce41109e@far.test>", "Undeliverable: offers")
     "Content-Type: multipart/report; report-type=delivery-status;\n\tboundary=\"=_b.1\"\n\n--=_b.1\nContent-Type: multipart/alternative; differences=Content-Type;\n\tboundary=\"=_a.1\"\n\n"
     "--=_a.1\nContent-Type: text/plain; charset=\"us-ascii\"\nContent-Transfer-Encoding: quoted-printable\n\nDelivery has failed to these recipients or groups:\n\n{to}<mailto:{to}>\nThe email address you entered couldn't be found.\n\n"
     "Remote Server returned '{code} {status} {words}'\n\n--=_a.1\nContent-Type: text/html\n\n<html><body><b>Delivery has failed</b> <a href=3D\"mailto:x\">{to}</a></body></html>\n--=_a.1--\n\n--=_b.1\n"
     "Content-Type: message/delivery-status\n\nReporting-MTA: dns;exch.far.test\nReceived-From-MTA: dns;shop.test\nArrival-Date: Sat, 21 Nov 2026 03:05:08 +0000\n\n"
     "Original-Recipient: rfc822;{to}\nFinal-Recipient: rfc822;{to}\nAction: {action}\nStatus: {status}\nDiagnostic-Code: smtp;{code} {status} {words}\nX-Display-Name: Joe\n\n\n"
     "--=_b.1\nContent-Type: message/rfc822\n\n" RETURNED "\nhello\n\n--=_b.1--\n"},
    {"Microsoft 365", EXACT, true,
     DSN_HEAD("<postmaster@far.onmicrosoft.test>", "Undeliverable: offers")
     "Content-Type: multipart/report; report-type=delivery-status;\n\tboundary=\"=_b.1\"\nX-MS-Exchange-Message-Is-Ndr:\n\n--=_b.1\nContent-Type: text/html; charset=\"utf-8\"\nContent-Transfer-Encoding: base64\n\n"
     "PGh0bWw+PGJvZHk+WW91ciBtZXNzYWdlIGNvdWxkbid0IGJlIGRlbGl2ZXJlZC48L2JvZHk+PC9o\ndG1sPg==\n\n--=_b.1\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns;DB7.prod.far.test\nReceived-From-MTA: dns;shop.test\n\nFinal-Recipient: rfc822;{to}\nAction: {action}\nStatus: {status}\nDiagnostic-Code: smtp;{code} {status} {words} [DB7.prod.far.test 2026-11-21T03:05:08.000Z 08DE]\nRemote-MTA: dns;mx.b.test\n\n"
     "--=_b.1\nContent-Type: message/rfc822\n\n" RETURNED "\nhello\n--=_b.1--\n"},
    {"Exchange 2003, text", EXACT, false,
     DSN_HEAD("System Administrator <postmaster@far.test>", "Undeliverable: offers") "\n"
     "Your message\n\n  To:      joe\n  Subject: offers\n\ndid not reach the following recipient(s):\n\n{to} on Sat, 21 Nov 2026 03:05:08 +0000\n    {words}\n    <far.test #{status} smtp;{code} {status} {words}>\n"},
    {"Gmail", EXACT, true,
     DSN_HEAD("Mail Delivery Subsystem <mailer-daemon@googlemail.test>", "Delivery Status Notification (Failure)")
     "X-Failed-Recipients: {to}\nAuto-Submitted: auto-replied\n" DSN_TYPE
     "--=_b.1\nContent-Type: multipart/related; boundary=\"=_r.1\"\n\n--=_r.1\nContent-Type: multipart/alternative; boundary=\"=_a.1\"\n\n--=_a.1\nContent-Type: text/plain; charset=\"UTF-8\"\n\n"
     "** Address not found **\n\nYour message wasn't delivered to {to} because the address couldn't be found, or is unable to receive mail.\n\nThe response from the remote server was:\n{code} {status} {words}\n\n"
     "--=_a.1\nContent-Type: text/html\n\n<p>Address not found</p>\n--=_a.1--\n--=_r.1\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\niVBORw0KGgo=\n--=_r.1--\n--=_b.1\nContent-Type: message/delivery-status\n\n"
     "Reporting-MTA: dns; googlemail.test\nReceived-From-MTA: dns; bounce+" MARK "@shop.test\nArrival-Date: Sat, 21 Nov 2026 03:05:08 +0000\nX-Original-Message-ID: <1@shop.test>\n\n"
     "Final-Recipient: rfc822; {to}\nAction: {action}\nStatus: {status}\nRemote-MTA: dns; mx.b.test. (192.0.2.7, the server for the domain b.test.)\nDiagnostic-Code: smtp; {code}-{status} {words}\n {code} {status} see http://support.test/answer=6596\nLast-Attempt-Date: Sat, 21 Nov 2026 03:05:08 -0800 (PST)\n\n"
     "--=_b.1\nContent-Type: message/rfc822\n\n" RETURNED "\nhello\n--=_b.1--\n"},
    {"Gmail, before its status part", EXACT, false,
     DSN_HEAD("Mail Delivery Subsystem <mailer-daemon@googlemail.test>", "Delivery Status Notification (Failure)") "X-Failed-Recipients: {to}\n\n"
     "Delivery to the following recipient failed permanently:\n\n     {to}\n\nTechnical details of permanent failure:\nGoogle tried to deliver your message, but it was rejected by the server for the recipient domain b.test by mx.b.test. [192.0.2.7].\n\n"
     "The error that the other server returned was:\n{code} {status} {words}\n\n----- Original message -----\n\n" RETURNED "\nhello\n"},
    {"Yahoo, text", EXACT, false,
     DSN_HEAD("MAILER-DAEMON@yahoo.test", "Failure Notice") "\n"
     "Sorry, we were unable to deliver your message to the following address.\n\n<{to}>:\n{code}: {status} {words}\n\n--- Below this line is a copy of the message.\n\n" RETURNED "\nhello\n"},
    {"sendmail", EXACT, true,
     DSN_HEAD("Mail Delivery Subsystem <MAILER-DAEMON@far.test>", "Returned mail: see transcript for details") "Auto-Submitted: auto-generated (failure)\n" DSN_TYPE
     "This is a MIME-encapsulated message\n\n--=_b.1\n\nThe original message was received at Sat, 21 Nov 2026 03:05:08 GMT\nfrom shop.test [192.0.2.1]\n\n   ----- The following addresses had permanent fatal errors -----\n<{to}>\n    (reason: {code} {status} {words})\n\n"
     "   ----- Transcript of session follows -----\n... while talking to mx.b.test.:\n>>> DATA\n<<< {code} {status} {words}\n\n--=_b.1\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; far.test\nReceived-From-MTA: DNS; shop.test\nArrival-Date: Sat, 21 Nov 2026 03:05:08 GMT\n\n"
     "Final-Recipient: RFC822; {to}\nAction: {action}\nStatus: {status}\nRemote-MTA: DNS; mx.b.test\nDiagnostic-Code: SMTP; {code} {status} {words}\nLast-Attempt-Date: Sat, 21 Nov 2026 03:05:08 GMT\n\n--=_b.1\nContent-Type: message/rfc822\n\n" RETURNED "\nhello\n--=_b.1--\n"},
    {"sendmail 8.6, text", EXACT, false,
     DSN_HEAD("Mail Delivery Subsystem <MAILER-DAEMON@far.test>", "Returned mail: User unknown") "\n"
     "The original message was received at Sat, 21 Nov 2026 03:05:08 GMT\n\n   ----- The following addresses had permanent fatal errors -----\n<{to}>\n\n   ----- Transcript of session follows -----\n... while talking to mx.b.test.:\n>>> RCPT To:<{to}>\n<<< {code} {status} {words}\n\n   ----- Original message follows -----\n" RETURNED "\nhello\n"},
    {"Domino", EXACT, true,
     DSN_HEAD("Mail Router <postmaster@far.test>", "DELIVERY FAILURE: {words}") DSN_TYPE
     "--=_b.1\nContent-Type: text/plain; charset=US-ASCII\n\nYour message\n\n  Subject: offers\n\nwas not delivered to:\n\n  {to}\n\nbecause:\n\n  {words}\n\n\n--=_b.1\nContent-Type: message/delivery-status\n\nReporting-MTA: dns;domino.far.test\n\n"
     "Final-Recipient: rfc822;{to}\nAction: {action}\nStatus: {status}\nDiagnostic-Code: X-Notes; {words} {code} {status}\n\n--=_b.1\nContent-Type: message/rfc822\n\n" RETURNED "\nhello\n--=_b.1--\n"},
    {"Domino, text", EXACT, false,
     DSN_HEAD("Postmaster <postmaster@far.test>", "DELIVERY FAILURE") "\nYour message\n\n  Subject: offers\n\nwas not delivered to:\n\n  {to}\n\nbecause:\n\n  {code} {status} {words}\n"},
    {"MDaemon", EXACT, false,
     DSN_HEAD("MDaemon at far.test <MDaemon@far.test>", "Permanent Delivery Failure") "X-MDDSN-Message: Yes\n" DSN_TYPE
     "--=_b.1\nContent-Type: text/plain; charset=US-ASCII\n\nThe attached message had PERMANENT fatal delivery errors!\n\nAfter one or more unsuccessful delivery attempts the attached message has been removed from the mail queue. The number and frequency of delivery attempts are determined by local configuration.\n\n"
     "Failed address: {to}\n\n--- Session Transcript ---\n  <-- {code} {status} {words}\n--- End Transcript ---\n\n--=_b.1\nContent-Type: message/rfc822\n\n" RETURNED "\nhello\n--=_b.1--\n"},
    {"Courier", EXACT, true,
     DSN_HEAD("\"Courier mail server at far.test\" <postmaster@far.test>", "NOTICE: mail delivery status.") DSN_TYPE
     "--=_b.1\nContent-Type: text/plain; charset=us-ascii\n\nThis is a delivery status notification from far.test, running the Courier mail server.\n\n                           UNDELIVERABLE MAIL\n\nYour message to the following recipients cannot be delivered:\n\n<{to}>:\n    mx.b.test [192.0.2.7]:\n>>> RCPT TO:<{to}>\n<<< {code} {status} {words}\n\n"
     "--=_b.1\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; far.test\nArrival-Date: Sat, 21 Nov 2026 03:05:08 +0000\nReceived-From-MTA: dns; shop.test\n\nFinal-Recipient: rfc822; {to}\nAction: {action}\nStatus: {status}\nDiagnostic-Code: smtp; {code} {status} {words}\n\n--=_b.1\nContent-Type: text/rfc822-headers; charset=us-ascii\n\n" RETURNED "\n--=_b.1--\n"},
    {"IBM VM", FAMILY, false,
     DSN_HEAD("SMTP@FAR.TEST", "Undeliverable Mail") "\nFAR.TEST unable to deliver following mail to recipient(s):\n    <{to}>\nFAR.TEST received negative reply:\n    {code} {words}\n\n           ** Text of Mail follows **\n" RETURNED "\nhello\n"},
    {"Mimecast", EXACT, true,
     DSN_HEAD("postmaster@mimecast.test", "[Postmaster] Email Delivery Failure") DSN_TYPE
     "--=_b.1\nContent-Type: text/html; charset=UTF-8\n\n<html><body>We were unable to deliver your message to the following recipients: <p>{to}</p></body></html>\n--=_b.1\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; mimecast.test\n\n"
     "Final-Recipient: rfc822; {to}\nAction: {action}\nStatus: {status}\nDiagnostic-Code: smtp; {code} {status} {words}\n\n--=_b.1\nContent-Type: text/rfc822-headers\n\n" RETURNED "\n--=_b.1--\n"},
    {"Proofpoint, no text", EXACT, true,
     DSN_HEAD("MAILER-DAEMON@pphosted.test", "Undelivered Mail Returned to Sender") DSN_TYPE
     "--=_b.1\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; pphosted.test\n\nFinal-Recipient: rfc822; <{to}>\nAction: {action}\nStatus: {status} (permanent)\nDiagnostic-Code: smtp; {code} {status} {words}\n--=_b.1--\n"},
    {"no closing delimiter, no report-type", EXACT, true,
     DSN_HEAD("Mail Delivery System <MAILER-DAEMON@far.test>", "Mail delivery failed") "Content-Type: multipart/report; boundary=\"=_b.1\"\n\n"
     "--=_b.1\n\nnothing\n--=_b.1\nContent-Type: Message/Delivery-Status\n\n" FIELDS},
    {"no Action", EXACT, true,
     DSN_HEAD("MAILER-DAEMON@far.test", "delivery problem") DSN_TYPE "--=_b.1\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; far.test\n\nFinal-Recipient: rfc822; {to}\nStatus: {status}\nDiagnostic-Code: {code} {words}\n\n--=_b.1--\n"},
    {"no Status", EXACT, true,
     DSN_HEAD("MAILER-DAEMON@far.test", "delivery problem") DSN_TYPE "--=_b.1\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; far.test\nFinal-Recipient: rfc822; {to}\nAction: {action}\nDiagnostic-Code: smtp; {code} {status} {words}\n\n--=_b.1--\n"},
    {"Status 5.0.0 beside a better one", EXACT, true,
     DSN_HEAD("MAILER-DAEMON@far.test", "delivery problem") DSN_TYPE "--=_b.1\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; far.test\n\nFinal-Recipient: rfc822; {to}\nAction: {action}\nStatus: {family}.0.0\nDiagnostic-Code: smtp; {code} {status} {words}\n\n--=_b.1--\n"},
    {"two recipients, ours the second, no empty line", EXACT, true,
     DSN_HEAD("MAILER-DAEMON@far.test", "delivery problem") DSN_TYPE "--=_b.1\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; far.test\n\nOriginal-Recipient: rfc822;x@c.test\nFinal-Recipient: rfc822; x@c.test\nAction: delivered\nStatus: 2.0.0\nOriginal-Recipient: rfc822;{to}\nFinal-Recipient: rfc822; {to}\nAction: {action}\nStatus: {status}\nDiagnostic-Code: smtp; {code} {status} {words}\n\n--=_b.1--\n"},
    {"status as plain text", EXACT, true,
     DSN_HEAD("Mail Delivery Subsystem <MAILER-DAEMON@far.test>", "Delivery Failure") "Content-Type: multipart/mixed; boundary=\"=_b.1\"\n\n--=_b.1\nContent-Type: text/plain\n\nYour message could not be delivered.\n\n--=_b.1\nContent-Type: text/plain; name=\"details.txt\"\n\n" FIELDS "\n--=_b.1--\n"},
    {"the boundary is missing", EXACT, true,
     DSN_HEAD("Mail Delivery Subsystem <MAILER-DAEMON@far.test>", "Delivery Failure") "Content-Type: multipart/report; report-type=delivery-status\n\n--=_b.1\nContent-Type: message/delivery-status\n\n" FIELDS "\n--=_b.1--\n"},
    {"a report in a message of a gateway", EXACT, true,
     DSN_HEAD("gateway@far.test", "Fw: Undelivered") "Content-Type: multipart/mixed; boundary=\"=_o\"\n\n--=_o\nContent-Type: text/plain\n\nsee below\n--=_o\nContent-Type: message/rfc822\n\n"
     DSN_HEAD("MAILER-DAEMON@far.test", "Undelivered Mail Returned to Sender") DSN_TYPE "--=_b.1\nContent-Type: message/delivery-status\n\n" FIELDS "\n--=_b.1--\n--=_o--\n"},
    {"German, text", EXACT, false,
     DSN_HEAD("Mail Delivery System <mailer-daemon@far.test>", "Mail delivery failed: Unzustellbar") "\nIhre Nachricht konnte nicht zugestellt werden an:\n\n{to}:\nSMTP error: {code} {status} {words}\n\n--- The header of the original message is following. ---\n\n" RETURNED},
    {"French, text", EXACT, false,
     DSN_HEAD("Mailer-Daemon@far.test", "Message non remis") "\nVotre message n'a pas pu \xc3\xaatre remis \xc3\xa0 <{to}>\nRaison : {code} {status} {words}\n"},
    {"HTML alone", EXACT, false,
     DSN_HEAD("Mail Delivery System <postmaster@far.test>", "Undeliverable mail") "Content-Type: text/html\n\n<html><body><h1>Delivery has failed</h1><table><tr><td><a href=\"x\">{to}</a></td><td>{code} {status} {words}</td></tr></table></body></html>\n"},
    {"Mercury, text", EXACT, false,
     DSN_HEAD("Electronic Postmaster <postmaster@far.test>", "Postmaster notify: delivery failed") "\nWith reference to your message, the following addresses could not be delivered:\n\n   {to}\n      {code} {status} {words}\n\n"},
};

/* --- Forms of transport ------------------------------------------------------------- */

enum form { FORM_LF, FORM_CRLF, FORM_BASE64, FORMS };

static void
add(struct buffer *out, struct text t)
{
    if (!buffer_add(out, t))
        abort();
}

/* The body of each delivery-status part in base64, as some gateways do. */
static void
encode_status(struct buffer *out)
{
    static const char head[] = "message/delivery-status\n\n";
    struct buffer made;
    const char *at = memmem(out->at, out->length, head, strlen(head));
    if (at == NULL)
        return;
    at += strlen(head);
    const char *end = memmem(at, (size_t)(out->at + out->length - at), "\n--=_b.1", 8);
    end = end != NULL ? end : out->at + out->length;
    buffer_init(&made, out->limit);
    add(&made, text_of(out->at, (size_t)(at - out->at) - 1));
    add(&made, TEXT("Content-Transfer-Encoding: base64\n\n"));
    for (const char *piece = at; piece < end; piece += 57) {
        size_t left = (size_t)(end - piece);
        if (!base64_encode(text_of(piece, left < 57 ? left : 57), &made))
            abort();
        add(&made, TEXT("\n"));
    }
    add(&made, text_of(end, (size_t)(out->at + out->length - end)));
    buffer_free(out);
    *out = made;
}

static void
fill(const char *text, const struct reason *reason, bool delays, struct buffer *out)
{
    char family[2] = {reason->status[0], '\0'};
    const struct {
        const char *name, *value;
    } values[] = {
        {"{to}", "joe.public+tag@b.test"},
        {"{code}", reason->code},
        {"{status}", reason->status},
        {"{words}", reason->words},
        {"{family}", family},
        {"{action}", reason->status[0] == '4' && delays ? "delayed" : "failed"},
    };
    buffer_init(out, 1 << 20);
    while (*text != '\0') {
        size_t i = 0, count = sizeof(values) / sizeof(values[0]);
        while (i < count && strncmp(text, values[i].name, strlen(values[i].name)) != 0)
            i++;
        add(out, i < count ? text_from(values[i].value) : text_of(text, 1));
        text += i < count ? strlen(values[i].name) : 1;
    }
}

static const struct reading *
read_in(struct report_reader *r, struct text t, enum form form, size_t piece)
{
    struct buffer crlf;
    buffer_init(&crlf, 1 << 23);
    for (size_t i = 0; i < t.length; i++) {
        if (form == FORM_CRLF && t.at[i] == '\n')
            add(&crlf, TEXT("\r"));
        add(&crlf, text_of(t.at + i, 1));
    }
    t = buffer_text(&crlf);
    while (t.length > 0) {
        reading_add(r, text_before(t, piece));
        t = text_after(t, piece);
    }
    const struct reading *reading = reading_end(r);
    buffer_free(&crlf);
    return reading;
}

static struct report_reader *
reader(void)
{
    return reading_new(text_from(mark), TEXT(STAMP));
}

/* --- The corpus --------------------------------------------------------------------- */

static const char *
judge(const struct shape *shape, const struct reason *reason, const struct reading *got)
{
    const struct reading_recipient *r = NULL;
    if (got->kind != READING_STATUS)
        return "it is no report";
    for (size_t i = 0; i < got->count; i++)
        if (strcmp(got->recipients[i].address, "joe.public+tag@b.test") == 0)
            r = &got->recipients[i];
    if (r == NULL)
        return "the recipient is not found";
    bool is_delay = reason->status[0] == '4' && shape->delays;
    if (r->action != (is_delay ? REPORT_DELAYED : REPORT_FAILED))
        return "the action";
    if (shape->exact == EXACT ? strcmp(r->status, reason->status) != 0
                              : r->status[0] != reason->status[0])
        return "the status";
    if (strstr(shape->text, "Return-Path: <bounce+") != NULL &&
        (got->mark_count != 1 || strcmp(got->marks[0], MARK) != 0))
        return "the mark";
    if (strstr(shape->text, STAMP) != NULL &&
        strcmp(got->stamp, "am9lQGIudGVzdA.ABCDEF") != 0)
        return "the stamp";
    return NULL;
}

TEST(reports_of_thirty_systems_are_read)
{
    unsigned count = 0, right = 0;
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++)
        for (size_t i = 0; i < sizeof(reasons) / sizeof(reasons[0]); i++) {
            struct buffer text;
            enum form form = (enum form)((s + i) % FORMS);
            struct report_reader *r = reader();
            fill(shapes[s].text, &reasons[i], shapes[s].delays, &text);
            if (form == FORM_BASE64)
                encode_status(&text);
            const struct reading *got =
                read_in(r, buffer_text(&text), form, i == 0 ? 1 : 4096);
            const char *why = judge(&shapes[s], &reasons[i], got);
            if (why != NULL)
                printf("# %s, %s: %s\n", shapes[s].system, reasons[i].status, why);
            count++;
            right += why == NULL;
            reading_free(&r);
            buffer_free(&text);
        }
    printf("# %u of %u\n", right, count);
    ok_named(count >= 200, "at least 200 reports");
    ok_named(right * 100 >= count * 98, "of 100, 98 are read right");
}

/* --- One by one --------------------------------------------------------------------- */

static void
read_one(struct report_reader **r, const struct reading **got, const char *text)
{
    *r = reader();
    *got = read_in(*r, text_from(text), FORM_LF, 4096);
}

#define ARF(type, more)                                                                  \
    "From: <fbl@mail.test>\nTo: bounce@shop.test\nSubject: FW: offers\nMIME-Version: 1.0\n"  \
    "Content-Type: multipart/report; report-type=feedback-report; boundary=\"f\"\n\n--f\n"   \
    "Content-Type: text/plain\n\nThis is an email abuse report.\n\n--f\n"                    \
    "Content-Type: message/feedback-report\n\n" type "User-Agent: SomeLoop/1.0\nVersion: 1\n" more \
    "\n--f\nContent-Type: message/rfc822\n\n" RETURNED "\nhello\n--f--\n"

TEST(complaints)
{
    static const struct {
        const char *name, *text, *feedback;
        size_t count;
    } cases[] = {
        {"abuse", ARF("Feedback-Type: abuse\n", "Original-Rcpt-To: <joe@b.test>\n"), "abuse", 1},
        {"fraud", ARF("Feedback-Type: Fraud\n", ""), "fraud", 0},
        {"not-spam", ARF("Feedback-Type: not-spam\n", ""), "not-spam", 0},
        {"virus", ARF("Feedback-Type: virus\n", "Removal-Recipient: joe@b.test\nReporting-MTA: dns; loop.test\n"), "virus", 1},
        {"redacted", ARF("Feedback-Type: abuse\n", "Original-Rcpt-To: redacted\n"), "abuse", 1},
        {"Outlook's old form",
         "From: staff@hotmail.test\nSubject: complaint\nContent-Type: multipart/mixed; boundary=f\n\n--f\nContent-Type: message/rfc822\n\n"
         "X-HmXmrOriginalRecipient: joe@b.test\n" RETURNED "\nhello\n--f--\n", "", 0},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct report_reader *r;
        const struct reading *got;
        read_one(&r, &got, cases[i].text);
        ok_named(got->kind == READING_COMPLAINT, cases[i].name);
        is_string(got->feedback, cases[i].feedback, "its type");
        is_number(got->count, cases[i].count, "its recipients");
        is_string(got->mark_count == 1 ? got->marks[0] : "", MARK, "the mark in what came back");
        is_string(got->stamp, "am9lQGIudGVzdA.ABCDEF", "the stamp there");
        reading_free(&r);
    }
}

TEST(no_bounces)
{
    static const struct {
        const char *name, *text;
        enum reading_kind kind;
    } cases[] = {
        {"vacation", "From: joe@b.test\nSubject: Re: offers\nAuto-Submitted: auto-replied (vacation)\n\nI am away.\n", READING_AUTOMATIC},
        {"out of office", "From: joe@b.test\nSubject: Out of Office: offers\n\nMail could not be delivered to me.\n", READING_AUTOMATIC},
        {"German", "From: joe@b.test\nSubject: Automatische Antwort: x\nX-Autoreply: yes\n\nBin weg.\n", READING_AUTOMATIC},
        {"an old form", "From: joe@b.test\nSubject: x\nPrecedence: auto_reply\n\nAway.\n", READING_AUTOMATIC},
        {"a receipt", "From: joe@b.test\nSubject: Read: offers\nContent-Type: multipart/report; report-type=disposition-notification; boundary=f\n\n--f\n\nread\n--f\nContent-Type: message/disposition-notification\n\nFinal-Recipient: rfc822; joe@b.test\nDisposition: manual-action/MDN-sent-manually; displayed\n--f--\n", READING_AUTOMATIC},
        {"a reply by a person", "From: joe@b.test\nSubject: Re: offers\n\nYour last offer could not be delivered to joe@b.test, 550 5.1.1.\n", READING_NONE},
        {"nothing", "", READING_NONE},
        {"a newsletter", "From: news@b.test\nSubject: weekly\n\n550 things\n", READING_NONE},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct report_reader *r;
        const struct reading *got;
        read_one(&r, &got, cases[i].text);
        is_number(got->kind, cases[i].kind, cases[i].name);
        reading_free(&r);
    }
}

/* A host that cannot be found now may be back; a mailbox that does not exist is not. */
TEST(words_of_hosts)
{
    static const char *const hosts[] = {"Host or domain name not found. Name service error for name=b.test", "host not found",
                                        "Domain not found", "domain does not exist"};
    for (size_t i = 0; i < sizeof(hosts) / sizeof(hosts[0]); i++) {
        struct report_reader *r;
        const struct reading *got;
        char text[400];
        snprintf(text, sizeof(text),
                 "From: MAILER-DAEMON@far.test\nSubject: Undelivered Mail\n\nThis is the mail system at host far.test.\n\n"
                 "<joe@b.test>: %s\n",
                 hosts[i]);
        read_one(&r, &got, text);
        is_string(got->recipients[0].status, "5.1.2", hosts[i]);
        reading_free(&r);
    }
}

#define PART(fields)                                                                     \
    "From: MAILER-DAEMON@far.test\nContent-Type: multipart/report; report-type=delivery-status; boundary=f\n\n--f\n" \
    "Content-Type: message/delivery-status\n\nReporting-MTA: dns; far.test\n\n" fields "--f--\n"

TEST(fields_in_odd_forms)
{
    static const struct {
        const char *name, *text, *address, *status;
        enum report_action action;
    } cases[] = {
        {"delivered", PART("Final-Recipient: rfc822; a@b.test\nAction: delivered\nStatus: 2.1.5\n"), "a@b.test", "2.1.5", REPORT_DELIVERED},
        {"relayed", PART("Final-Recipient: rfc822; a@b.test\nAction: relayed (to a host without DSN)\nStatus: 2.1.9\n"), "a@b.test", "2.1.9", REPORT_RELAYED},
        {"expanded", PART("Final-Recipient: rfc822; a@b.test\nAction: Expanded\n"), "a@b.test", "2.0.0", REPORT_EXPANDED},
        {"delayed", PART("Final-Recipient: rfc822; a@B.TEST\nAction: delayed\nStatus: 4.4.1\n"), "a@b.test", "4.4.1", REPORT_DELAYED},
        {"unitext", PART("Final-Recipient: utf-8; j\\x{FC}rgen@b.test\nAction: failed\nStatus: 5.1.1\n"), "j\xc3\xbcrgen@b.test", "5.1.1", REPORT_FAILED},
        {"UTF-8", PART("Final-Recipient: utf-8; j\xc3\xbcrgen@b.test\nAction: failed\nStatus: 5.1.1\n"), "j\xc3\xbcrgen@b.test", "5.1.1", REPORT_FAILED},
        {"no type", PART("Final-Recipient: a@b.test\nAction: failed\nStatus: 5.1.1\n"), "a@b.test", "5.1.1", REPORT_FAILED},
        {"an address of IPv4 is no status", PART("Final-Recipient: rfc822; a@b.test\nAction: failed\nDiagnostic-Code: smtp; host 5.1.1.4 said no\n"), "a@b.test", "5.0.0", REPORT_FAILED},
        {"a code alone", PART("Final-Recipient: rfc822; a@b.test\nDiagnostic-Code: smtp; 450 later\n"), "a@b.test", "4.0.0", REPORT_DELAYED},
        {"bad lines between", PART("???\nFinal-Recipient: rfc822; a@b.test\n!!!\nAction: failed\nStatus: 5.2.2\n"), "a@b.test", "5.2.2", REPORT_FAILED},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct report_reader *r;
        const struct reading *got;
        read_one(&r, &got, cases[i].text);
        ok_named(got->kind == READING_STATUS && got->count == 1, cases[i].name);
        is_string(got->recipients[0].address, cases[i].address, "its address");
        is_string(got->recipients[0].status, cases[i].status, "its status");
        is_number(got->recipients[0].action, cases[i].action, "its action");
        is_string(got->reporter, "far.test", "its reporter");
        reading_free(&r);
    }
}

TEST(a_hostile_report_stays_within_its_limits)
{
    struct buffer text;
    buffer_init(&text, 1 << 22);
    add(&text, TEXT("From: MAILER-DAEMON@far.test\nContent-Type: multipart/report; report-type=delivery-status; "
                    "boundary=f\n\n--f\nContent-Type: message/delivery-status\n\n"));
    for (int i = 0; i < 5000; i++)
        if (!buffer_format(&text, "Final-Recipient: rfc822; bounce+a%d@b.test\nAction: failed\nDiagnostic-Code: smtp; \x1b[1m%0500d\n\n", i, i))
            abort();
    struct report_reader *r = reader();
    const struct reading *got = read_in(r, buffer_text(&text), FORM_LF, 1 << 20);
    is_number(got->count, READING_RECIPIENTS_MAX, "recipients");
    is_number(got->mark_count, READING_MARKS_MAX, "marks");
    ok(strlen(got->recipients[0].text) < sizeof(got->recipients[0].text));
    ok(!text_has_control(text_from(got->recipients[0].text)));
    reading_free(&r);
    buffer_free(&text);
}
