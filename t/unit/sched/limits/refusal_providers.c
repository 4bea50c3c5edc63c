/* Classes of refusals: replies of mailbox providers, smarthosts, filters and servers, each
 * with the class that its meaning has. */
#include "t/support/refusal_rows.h"
#include "t/support/tap.h"

#define GMAIL   "gmail-smtp-in.l.google.com"
#define SUBMIT  "smtp.gmail.com"
#define OUTLOOK "contoso-com.mail.protection.outlook.com"
#define OFFICE  "smtp.office365.com"
#define YAHOO   "mta5.am0.yahoodns.net"
#define SES     "email-smtp.eu-west-1.amazonaws.com"
#define APPLE   "mx01.mail.icloud.com"
#define GMX     "mx00.gmx.net"
#define TONLINE "mx00.t-online.de"
#define ORANGE  "smtp-in.orange.fr"
#define FREE    "mx1.free.fr"
#define MAILRU  "mxs.mail.ru"
#define YANDEX  "mx.yandex.ru"
#define QQ      "mx3.qq.com"
#define NETEASE "163mx01.mxmail.netease.com"
#define ZOHO    "mx.zoho.com"
#define FAST    "in1-smtp.messagingengine.com"
#define PROTON  "mail.protonmail.ch"
#define OTHER   "mx.example.net"

static const struct refusal_row replies[] = {
    /* Apple. */
    {"no_user", APPLE, "550 5.1.1 <a@icloud.com>: user does not exist"},
    {"no_user", APPLE, "550 5.1.6 recipient no longer on server: a@me.com"},
    {"no_user", APPLE, "550 5.1.1 <a@icloud.com>: inactive email address"},
    {"full", APPLE, "552 5.2.2 <a@icloud.com>: user is over quota"},
    {"auth", APPLE, "550 5.7.1 Your message was rejected due to b.example DMARC policy."},
    {"auth", APPLE, "554 5.7.1 Your message was rejected due to b.example DMARC policy. See https://support.apple.com/en-us/HT204137"},
    {"reputation", APPLE, "550 5.7.0 Blocked - see https://support.proofpoint.com/dnsbl-lookup.cgi?ip=192.0.2.1"},
    {"content", APPLE, "554 5.7.1 [HM08] Message rejected due to possible spam content"},
    {"", APPLE, "550 5.7.1 [CS01] Message rejected due to local policy. Please visit https://support.apple.com/en-us/HT204137"},
    {"", APPLE, "421 4.7.1 Messages to <a@icloud.com> deferred due to excessive volume. Try again later"},
    {"", APPLE, "421 4.7.0 me.com Error: too many errors"},
    /* GMX, WEB.DE, IONOS. */
    {"no_user", GMX, "550 Requested action not taken: mailbox unavailable. For explanation visit https://postmaster.gmx.net"},
    {"no_user", GMX, "550 <a@web.de>: Unknown local part a in <a@web.de>"},
    {"no_user", GMX, "550 Benutzer nicht bekannt/User unknown"},
    {"full", GMX, "552 Requested mail action aborted: exceeded storage allocation. Quota exceeded. The recipient's mailbox is over its limit."},
    {"full", GMX, "550 User has exhausted allowed storage space."},
    {"auth", GMX, "550 <a@b.example>: Reject due to SPF policy. The originating IP of the message is not permitted by the domain owner"},
    {"auth", GMX, "550 Reject due to domain owner's DMARC policy."},
    {"reputation", GMX, "554 gmx.net (mxgmx104) Nemesis ESMTP Service not available / No SMTP service / IP address is block listed."},
    {"reputation", GMX, "554 web.de (mxweb110) Nemesis ESMTP Service not available No SMTP service Bad reputation of the sending IP"},
    {"ptr", GMX, "554 gmx.net (mxgmx011) Nemesis ESMTP Service not available No SMTP service Bad DNS PTR resource record."},
    {"ptr", GMX, "554 kundenserver.de Nemesis ESMTP Service not available; invalid DNS PTR resource record"},
    {"too_big", GMX, "552 Requested mail action aborted: message size exceeds limit"},
    {"", GMX, "421 Rate limit reached. Please try again later"},
    {"", GMX, "450 Requested mail action not taken: mailbox unavailable, Reject due to policy violations."},
    {"", GMX, "554 Reject due to policy violations."},
    /* T-Online. */
    {"no_user", TONLINE, "550 5.1.1 user unknown"},
    {"full", TONLINE, "552 5.2.2 Over STORAGE quota"},
    {"reputation", TONLINE, "554 IP=192.0.2.1 - A problem occurred. Ask your postmaster for help or to contact tosa@rx.t-online.de to clarify. (BL)"},
    {"reputation", TONLINE, "554 IP=192.0.2.1 - None/bad reputation. Ask your postmaster for help or to contact tobr@rx.t-online.de for reset. (NOWL)"},
    {"ptr", TONLINE, "554 IP=192.0.2.1 - Dialup/transient IP not allowed. Use a mailgateway/smarthost or ask for a reverse DNS name. (DYN)"},
    {"content", TONLINE, "550 5.7.0 Message considered as spam or virus, rejected"},
    /* Orange, Wanadoo, La Poste. */
    {"no_user", ORANGE, "550 5.1.1 Adresse d au moins un destinataire invalide. Invalid recipient. OFR_416 [416]"},
    {"no_user", ORANGE, "550 5.5.0 Boite du destinataire archivee. Archived recipient. OFR_420 [420]"},
    {"no_user", ORANGE, "550 5.5.0 Le compte du destinataire est bloque. The recipient account isblocked. LPN007_426"},
    {"full", ORANGE, "552 5.1.1 Boite du destinataire pleine. Recipient overquota. OFR_417 [417]"},
    {"too_big", ORANGE, "552 5.2.3 Taille limite du message atteinte. Message size exceeded. OFR_514 [514]"},
    {"reputation", ORANGE, "550 mwinf5c04 ME Adresse IP source bloquee pour incident de spam. Client host blocked for spamming issues. OFR006_102 Ref"},
    {"auth", ORANGE, "550 5.5.0 SPF: 192.0.2.1 is not allowed to send mail. LPN004_401"},
    {"login", ORANGE, "550 5.7.0 Code d'authentification invalide OFR_305 [305]"},
    {"login", ORANGE, "550 5.5.0 Authentification requise. Authentication Required. LPN105_402"},
    {"sender", ORANGE, "550 5.5.3 Mail from not owned by user. LPN105_421."},
    {"", ORANGE, "421 mwinf5c77 ME Service refuse. Veuillez essayer plus tard. Service refused, please try later. OFR_999 [999]"},
    {"", ORANGE, "421 mwinf5c09 ME Trop de connexions, veuillez verifier votre configuration. Too many connections, slow down. OFR004_104 [104]"},
    {"", ORANGE, "550 5.2.0 Mail rejete. Mail rejected. OFR_506 [506]"},
    /* Free, SFR. */
    {"no_user", FREE, "550 5.1.1 <a@free.fr>: Recipient address rejected: mailbox unavailable"},
    {"no_user", FREE, "550 5.2.1 This mailbox has been blocked due to inactivity (UserSearch)"},
    {"content", FREE, "550 spam detected"},
    {"reputation", FREE, "421 Too many spams from your IP (192.0.2.1), please visit http://postmaster.free.fr/"},
    /* Mail.ru, Yandex, Rambler. */
    {"no_user", MAILRU, "550 Message was not accepted -- invalid mailbox. Local mailbox a@mail.ru is unavailable: user not found"},
    {"no_user", MAILRU, "550 Message was not accepted -- invalid mailbox. Local mailbox a@mail.ru is unavailable: account is disabled"},
    {"auth", MAILRU, "550 5.7.1 This message was not accepted due to domain owner DMARC policy (RFC 7489) https://help.mail.ru/mail-help/postmaster/dmarc"},
    {"content", MAILRU, "550 spam message rejected. Please visit http://help.mail.ru/notspam-support/id?c=x or report details to abuse@corp.mail.ru."},
    {"content", MAILRU, "550 5.7.1 spam message discarded/rejected. If you think this is wrong, contact support"},
    {"reputation", MAILRU, "550 Access from your IP is denied: 192.0.2.1 is in blacklist. Please visit http://help.mail.ru/notspam-support"},
    {"full", MAILRU, "552 Message was not accepted -- mailbox a@mail.ru is full"},
    {"", MAILRU, "451 Ratelimit exceeded for mailbox a@mail.ru. Try again later."},
    {"no_user", YANDEX, "550 5.7.1 No such user!"},
    {"no_user", YANDEX, "550 5.7.1 Policy rejection on the target address: no such user"},
    {"content", YANDEX, "554 5.7.1 [2] Message rejected under suspicion of SPAM; https://ya.cc/1IrBc"},
    {"sender", "smtp.yandex.ru", "553 5.7.1 Sender address rejected: not owned by auth user."},
    {"login", "smtp.yandex.ru", "535 5.7.8 Error: authentication failed: This user does not have access rights to this service"},
    {"login", "smtp.yandex.ru", "503 5.5.4 Bad sequence of commands: send AUTH command first."},
    {"full", YANDEX, "552 5.2.2 Mailbox size limit exceeded"},
    {"", YANDEX, "451 4.7.1 Sorry, the service is currently unavailable. Please come back later."},
    /* QQ, 163, Coremail. */
    {"no_user", QQ, "550 Mailbox not found. http://service.mail.qq.com/detail/122/169"},
    {"no_user", QQ, "550 The recipient is a deactivated mailbox. http://service.mail.qq.com/cgi-bin/help?no=1000742"},
    {"content", QQ, "550 Mail content denied. http://service.mail.qq.com/detail/122/171"},
    {"content", QQ, "550 Spam is embedded in the email. http://service.mail.qq.com/detail/122/59"},
    {"reputation", QQ, "550 Suspected spam ip. http://service.mail.qq.com/detail/122/66"},
    {"auth", QQ, "550 SPF check failed. http://service.mail.qq.com/detail/122/72"},
    {"auth", QQ, "550 DMARC check failed http://service.mail.qq.com/cgi-bin/help?no=1001508"},
    {"too_big", QQ, "552 Message too large. http://service.mail.qq.com/detail/122/168"},
    {"", QQ, "550 Ip frequency limited. http://service.mail.qq.com/detail/122/172"},
    {"", QQ, "550 Mail is rejected by recipients. http://service.mail.qq.com/detail/122/92"},
    {"", QQ, "550 Sender frequency limited. http://service.mail.qq.com/detail/122/174"},
    {"login", "smtp.qq.com", "535 Login Fail. Please enter your authorization code to login. More information in http://service.mail.qq.com"},
    {"sender", "smtp.qq.com", "501 mail from address must be same as authorization user"},
    {"no_user", NETEASE, "550 User not found: a@163.com"},
    {"no_user", NETEASE, "550 User suspended: a@163.com"},
    {"content", NETEASE, "554 DT:SPM 163 mx12,QMCowAD3 http://mail.163.com/help/help_spam_16.htm?ip=192.0.2.1"},
    {"reputation", NETEASE, "554 IP is rejected, DNSBL list: 192.0.2.1"},
    {"full", NETEASE, "552 Quota exceeded: mailbox of a@163.com"},
    {"sender", "smtp.163.com", "553 Mail from must equal authorized user"},
    /* Zoho. */
    {"no_user", ZOHO, "550 5.1.1 <a@zoho.com> User unknown"},
    {"content", ZOHO, "552 5.7.1 virus Win.Test.EICAR_HDB-1 detected by Zoho Mail"},
    {"sender", "smtp.zoho.com", "553 Relaying disallowed as root@vps7"},
    {"policy", "smtp.zoho.com", "550 5.4.6 Unusual sending activity detected. Please try after sometime"},
    {"policy", "smtp.zoho.com", "554 5.1.8 Email Outgoing Blocked"},
    {"login", "smtp.zoho.com", "535 Authentication Failed"},
    {"", ZOHO, "541 5.4.1 Mail rejected by destination domain"},
    /* Fastmail, Proton. */
    {"no_user", FAST, "550 5.1.1 <a@fastmail.com>: Recipient address rejected: User unknown in virtual mailbox table"},
    {"full", FAST, "452 4.2.2 <a@fastmail.com>: Recipient address rejected: mailbox over quota"},
    {"sender", "smtp.fastmail.com", "551 5.7.1 Not authorised to send from this header address"},
    {"no_user", PROTON, "550 5.1.1 <a@proton.me>: Recipient address rejected: Address does not exist"},
    {"auth", PROTON, "550 5.7.1 rejected by DMARC policy for b.example"},
    {"", PROTON, "450 4.7.1 Service temporarily unavailable"},
    /* Gmail and Google Workspace. */
    {"reputation", GMAIL, "550 5.7.1 [192.0.2.1 12] Our system has detected that this message is likely suspicious due to the very low reputation of the sending domain."},
    {"relay", "smtp-relay.gmail.com", "550 5.7.0 Mail relay denied [192.0.2.1]. Invalid credentials for relay for one of the domains in: b.example"},
    {"relay", "smtp-relay.gmail.com", "550 5.7.0 Mail relay denied"},
    {"form", GMAIL, "550 5.7.1 Messages missing a valid address in From: header, or having no From: header, are not accepted."},
    {"form", GMAIL, "550 5.7.1 This message is not RFC 2822 compliant, the header has duplicate headers."},
    {"content", GMAIL, "552 5.7.0 This message was blocked because it contains a link that presents a potential security issue: virus"},
    {"", GMAIL, "450 4.2.1 The user you are trying to contact is receiving mail at a rate that prevents additional messages from being delivered."},
    {"", GMAIL, "452 4.5.3 Your message has too many recipients."},
    {"login", SUBMIT, "534 5.7.14 <https://accounts.google.com/signin/continue?sarp=1> Please log in via your web browser and then try again."},
    /* Microsoft. */
    {"no_user", OUTLOOK, "550 5.4.1 Recipient address rejected: Access denied. AS(201806281)"},
    {"quota", OFFICE, "554 5.2.0 STOREDRV.Submission.Exception:SubmissionQuotaExceededException; Failed to process message: message submission quota exceeded"},
    {"quota", OFFICE, "550 5.1.90 Your message can't be sent because you've reached your daily limit for message recipients"},
    {"sender", OFFICE, "554 5.2.0 STOREDRV.Submission.Exception:SendAsDeniedException.MapiExceptionSendAsDenied; Failed to process message"},
    {"login", OFFICE, "535 5.7.3 Authentication unsuccessful"},
    {"login", OFFICE, "530 5.7.57 SMTP; Client was not authenticated to send anonymous mail during MAIL FROM"},
    {"policy", OFFICE, "550 5.7.501 Service unavailable. Access denied, spam abuse detected from this account"},
    {"reputation", OUTLOOK, "550 5.7.1 Service unavailable, Client host [192.0.2.1] blocked using Spamhaus. To request removal from this list see http://www.spamhaus.org/lookup.lasso (AS16012609)"},
    {"", OUTLOOK, "452 4.3.1 Insufficient system resources (TSTE)"},
    {"", OUTLOOK, "550 5.7.129 RESOLVER.RST.RestrictedToRecipientsPermission; restricted recipients"},
    {"", OUTLOOK, "451 4.7.500 Server busy. Please try again later from [192.0.2.1]. (S77719)"},
    /* Yahoo and AOL. */
    {"reputation", YAHOO, "553 5.7.1 [BL21] Connections will not be accepted from 192.0.2.1, because the ip is in Spamhaus's list"},
    {"reputation", YAHOO, "421 4.7.1 [TS03] All messages from 192.0.2.1 will be permanently deferred; poor ip reputation. Retrying will NOT succeed."},
    {"no_user", YAHOO, "554 delivery error: dd Requested mail action aborted: mailbox a@aol.com is disabled"},
    {"full", YAHOO, "552 1 Requested mail action aborted, mailbox full"},
    {"", YAHOO, "451 mta1.am0.yahoodns.net Resources temporarily unavailable. Please try again later [#4.16.1]."},
    {"login", "smtp.mail.yahoo.com", "535 5.7.0 (#AUTH005) Too many bad auth attempts."},
    /* Services that send for others. */
    {"quota", SES, "454 Throttling failure: Daily sending quota exceeded."},
    {"", SES, "454 Throttling failure: Maximum sending rate exceeded."},
    {"sender", SES, "554 Message rejected: Email address is not verified."},
    {"login", SES, "535 Authentication Credentials Invalid"},
    {"form", SES, "554 Transaction failed: Missing final '@domain'"},
    {"policy", SES, "554 Message rejected: Sending paused for this account. For more information, please check the inbox of the email address associated with your AWS account."},
    {"login", SES, "554 Access denied: User `arn:aws:iam::1:user/x' is not authorized to perform `ses:SendRawEmail'"},
    {"sender", "smtp.sendgrid.net", "550 The from address does not match a verified Sender Identity. Mail cannot be sent until this error is resolved."},
    {"quota", "smtp.sendgrid.net", "451 Authentication failed: Maximum credits exceeded"},
    {"login", "smtp.sendgrid.net", "535 Authentication failed: Bad username / password"},
    {"login", "smtp.mailgun.org", "535 5.7.0 Mailgun: Authentication failed"},
    {"sender", "smtp.mailgun.org", "550 5.7.1 Sandbox subdomains are for test purposes only. Sender not allowed: please add your own domain"},
    {"sender", "smtp.postmarkapp.com", "550 5.7.1 The 'From' address you supplied (root@vps7) is not a Sender Signature on your account."},
    {"no_user", "smtp.postmarkapp.com", "550 5.1.1 You tried to send to a recipient that has been marked as inactive."},
    {"sender", "smtp.sparkpostmail.com", "550 5.7.1 Unconfigured Sending Domain <b.example>"},
    {"sender", "smtp-relay.brevo.com", "550 5.7.1 Sending has been rejected because the sender you used root@vps7 is not valid. Validate your sender"},
    {"sender", "in-v3.mailjet.com", "550 5.1.0 Sender address not authorized: root@vps7 is not a validated sender"},
    /* Filters. */
    {"no_user", "d1.ess.barracudanetworks.com", "550 cuda_nsu 5.1.1 <a@b.example> Recipient address rejected: User unknown"},
    {"no_user", "d1.ess.barracudanetworks.com", "550 No such user (a@b.example)"},
    {"reputation", "d1.ess.barracudanetworks.com", "554 Service unavailable; Client host [192.0.2.1] blocked using Barracuda Reputation; http://www.barracudanetworks.com/reputation/?r=1&ip=192.0.2.1"},
    {"", "d1.ess.barracudanetworks.com", "550 permanent failure for one or more recipients (a@b.example:blocked)"},
    {"auth", "eu-smtp-inbound-1.mimecast.com", "550 SPF Sender Invalid - envelope rejected"},
    {"auth", "eu-smtp-inbound-1.mimecast.com", "550 DKIM Sender Invalid - envelope rejected"},
    {"auth", "eu-smtp-inbound-1.mimecast.com", "550 DMARC Sender Invalid - envelope rejected"},
    {"reputation", "eu-smtp-inbound-1.mimecast.com", "550 Local CT IP Reputation - (reject)"},
    {"reputation", "eu-smtp-inbound-1.mimecast.com", "451 IP temporarily blacklisted - https://community.mimecast.com"},
    {"tls", "eu-smtp-inbound-1.mimecast.com", "553 This route requires encryption (TLS)"},
    {"login", "eu-smtp-outbound-1.mimecast.com", "535 Incorrect authentication data"},
    {"relay", "eu-smtp-inbound-1.mimecast.com", "451 Open relay not allowed"},
    {"too_big", "eu-smtp-inbound-1.mimecast.com", "554 Maximum email size exceeded"},
    {"", "eu-smtp-inbound-1.mimecast.com", "550 Administrative prohibition - envelope blocked"},
    {"", "eu-smtp-inbound-1.mimecast.com", "550 Exceeding outbound thread limit"},
    {"", "eu-smtp-inbound-1.mimecast.com", "554 Mail loop detected - https://community.mimecast.com"},
    {"reputation", "mx1-us1.ppe-hosted.com", "554 Blocked - see https://ipcheck.proofpoint.com/?ip=192.0.2.1"},
    {"reputation", "mxa.pphosted.com", "550 5.7.1 Service unavailable; client [192.0.2.1] blocked using Proofpoint Dynamic Reputation"},
    {"relay", "mx1-us1.ppe-hosted.com", "550 5.7.1 <a@b.example>: Relay access denied."},
    {"content", "cluster1.eu.messagelabs.com", "553 Message filtered. Refer to the Troubleshooting page at http://www.symanteccloud.com/troubleshooting for more information. spam (#5.7.1)"},
    {"reputation", OTHER, "554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using bl.spamcop.net; Blocked - see https://www.spamcop.net/bl.shtml?192.0.2.1"},
    {"reputation", OTHER, "554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using dnsbl.sorbs.net; Currently Sending Spam See: http://www.sorbs.net/lookup.shtml?192.0.2.1"},
    {"reputation", OTHER, "550 5.7.1 Rejected: 192.0.2.1 listed at psbl.surriel.com"},
    {"reputation", OTHER, "550 JunkMail rejected - mail.b.example [192.0.2.1] is in an RBL: https://www.spamhaus.org/query/ip/192.0.2.1"},
    {"reputation", OTHER, "554 5.7.1 Rejected because 192.0.2.1 is in a black list at b.barracudacentral.org"},
    /* Postfix, Exim, Sendmail, qmail, OpenSMTPD, Dovecot, Cyrus. */
    {"no_user", OTHER, "550 5.1.1 <a@b.example>: Recipient address rejected: undeliverable address: mailbox lookup failed: no such user"},
    {"too_big", OTHER, "552 5.3.4 Message size exceeds fixed limit"},
    {"login", OTHER, "530 5.7.0 Must authenticate: Authentication required for MAIL"},
    {"sender", OTHER, "553 5.7.1 <root@vps7>: Sender address rejected: not logged in"},
    {"", OTHER, "450 4.1.8 <a@b.example>: Recipient address rejected: try later, verification in progress"},
    {"", OTHER, "554 5.4.0 Error: too many hops"},
    {"", OTHER, "504 5.5.2 <vps7>: Helo command rejected: need fully-qualified hostname"},
    {"relay", OTHER, "550 relay not permitted"},
    {"relay", OTHER, "550 Please turn on SMTP Authentication in your mail client. b.example is not permitted to relay through this server without authentication."},
    {"no_user", OTHER, "550 Unrouteable address"},
    {"no_user", OTHER, "550 Unknown user"},
    {"form", OTHER, "550 Message headers fail syntax check: missing or malformed local part"},
    {"relay", OTHER, "550 5.7.1 <a@b.example>... Relaying denied. Proper authentication required."},
    {"relay", OTHER, "550 5.7.1 <a@b.example>... Relaying denied. IP name lookup failed [192.0.2.1]"},
    {"no_user", OTHER, "550 5.1.1 <a@b.example>... User unknown"},
    {"sender", OTHER, "553 5.1.8 <root@vps7>... Domain of sender address root@vps7 does not exist"},
    {"no_user", OTHER, "554 Sorry, no mailbox here by that name. (#5.1.1)"},
    {"relay", OTHER, "553 sorry, that domain isn't in my list of allowed rcpthosts (#5.7.1)"},
    {"too_big", OTHER, "552 sorry, that message size exceeds my databytes limit (#5.3.4)"},
    {"", OTHER, "451 qq trouble in home directory (#4.3.0)"},
    {"no_user", OTHER, "550 Invalid recipient: a@b.example"},
    {"no_user", OTHER, "524 5.2.4 Mailing list expansion problem: no such recipient <a@b.example>"},
    {"no_user", OTHER, "550 5.1.1 <a@b.example> User doesn't exist: a@b.example"},
    {"full", OTHER, "552 5.2.2 <a@b.example> Quota exceeded (mailbox for user is full)"},
    {"full", OTHER, "422 4.2.2 Over quota SESSIONID=<x>"},
    {"no_user", OTHER, "550 5.1.1 User unknown SESSIONID=<cyrus-1-2-3>"},
    {"", OTHER, "451 4.2.0 <a@b.example> Execution of Sieve filters was aborted due to temporary failure"},
    {"", OTHER, "450 4.2.0 <a@b.example>: Recipient address rejected: Greylisted, see http://postgrey.schweikert.ch/help/b.example.html"},
};

int
main(void)
{
    refusal_rows_check(replies, sizeof(replies) / sizeof(replies[0]));
    return done();
}
