/* The table of settings. */
#include "admin/settings/options.h"

#define FIELD(name) offsetof(struct options, name)
#define SIZED(name) sizeof(((struct options *)0)->name)
#define HOUR        INT64_C(3600000)

/* One setting: its kind, field and key, its default as a user would write it, its
 * bounds if it is a number, and its help. */
#define TEXTUAL(kind, field, key, preset, help)                                        \
    {                                                                                  \
        key, SETTING_##kind, FIELD(field), preset, 0, 0, false, help, SIZED(field),    \
            NULL                                                                       \
    }
#define BOUNDED(kind, field, key, preset, min, max, help)                              \
    {                                                                                  \
        key, SETTING_##kind, FIELD(field), preset, min, max, false, help,              \
            SIZED(field), NULL                                                         \
    }

#define SECRET(field, key, help)                                                       \
    {                                                                                  \
        key, SETTING_STRING, FIELD(field), NULL, 0, 0, true, help, SIZED(field), NULL  \
    }

#define SECRET_TABLE(field, key, help)                                                 \
    {                                                                                  \
        key, SETTING_LIST, FIELD(field), NULL, 0, 0, true, help, SIZED(field), NULL    \
    }

#define WORD(field, key, preset, first, words, help)                                   \
    {                                                                                  \
        key, SETTING_WORD, FIELD(field), preset, first, 0, false, help, SIZED(field),  \
            words                                                                      \
    }

/* In the order of their enums. */
static const char *const receiveds[] = {"full", "short", "none", NULL};
static const char *const styles[] = {"petrel", "postfix", "json", NULL};
static const char *const levels[] = {"error", "warning", "info", "debug", NULL};
static const char *const maskings[] = {"full", "domain", "hash", NULL};
static const char *const sandboxes[] = {"yes", "no", "require", NULL};
static const char *const stops[] = {"keep", "hand_over", NULL};
static const char *const trusts[] = {"auto", "yes", "no", NULL};
static const char *const danes[] = {"auto", "no", NULL};
static const char *const keyings[] = {"sender", "strict", "id", NULL};
static const char *const timeouts[] = {"release", "bounce", "hold", NULL};
static const char *const suppress_scopes[] = {"all", "domain", NULL};
static const char *const partials[] = {"pass", "reject", NULL};

const struct setting options_rows[] = {
    TEXTUAL(STRING, hostname, "hostname", NULL,
            "Name in the banner, HELO and Received. Unset: the system's host name."),
    TEXTUAL(LIST, server.listen, "listen", "127.0.0.1:2525",
            "Addresses where mail is accepted: list of ADDRESS:PORT[?OPTION&...],\n"
            "unix:PATH[?OPTION&...] or fd:NAME[?OPTION&...] (sockets that systemd "
            "passes).\n"
            "Options: lmtp (speak LMTP), tls (TLS from the first byte), starttls=no,\n"
            "proxy (each connection begins with a PROXY header; see proxy_from),\n"
            "peer (for the other hosts of the group; see cluster_secret),\n"
            "auth=required, auth=no, share (with the daemons of other slices), "
            "profile=legacy\n"
            "(old devices); for unix:PATH also mode=0660, uid=NUMBER.\n"
            "Example: 0.0.0.0:25, [::]:25, 0.0.0.0:465?tls&auth=required, "
            "unix:/run/petrel/smtp"),
    TEXTUAL(LIST, server.tls_certificate, "tls_certificate", NULL,
            "List of PEM files, each a certificate followed by its intermediates. "
            "STARTTLS is\n"
            "offered when this is set. A client that asks for a name is shown the "
            "certificate with\n"
            "that name, others the first one. New files are used a minute after they "
            "are there."),
    TEXTUAL(
        LIST, server.tls_key, "tls_key", NULL,
        "List of PEM files, in the same order. Unset: the keys are in the files of\n"
        "tls_certificate."),
    TEXTUAL(BOOL, server.tls_legacy, "tls_legacy", "no",
            "yes: TLS 1.0 and 1.1 at listeners with ?profile=legacy, too, for devices "
            "that know\n"
            "nothing newer (with mbedTLS 2.28)."),
    TEXTUAL(STRING, spool, "spool", NULL,
            "Directory of the queue. Unset: /var/spool/petrel, or ./spool if that "
            "cannot be\n"
            "written."),
    TEXTUAL(STRING, user, "user", NULL,
            "User to switch to after binding, when started as root: a name, UID or "
            "UID:GID."),
    WORD(sandbox, "sandbox", "yes", 0, sandboxes,
         "Give up after startup all rights that the daemon does not need (Landlock, "
         "seccomp): yes, no, or\n"
         "require: do not start where the system lacks support."),
    TEXTUAL(LIST, server.relay_from, "relay_from", "127.0.0.0/8, ::1",
            "Networks whose clients may send mail to any domain."),
    TEXTUAL(STRING, server.relay_client_certificates, "relay_client_certificates", NULL,
            "File with lines FINGERPRINT NAME (SHA-256) and ca:FILE NAME...: clients "
            "with such a TLS\n"
            "certificate may send mail to any domain, as if they had logged in with "
            "that name."),
    TEXTUAL(STRING, server.auth_users, "auth_users", NULL,
            "File with lines user:VERIFIER, made by `petrel passwd`. These users may "
            "log in, and\n"
            "then send mail to any domain. When set, AUTH is offered under TLS and on "
            "Unix sockets."),
    TEXTUAL(STRING, server.auth, "auth", NULL,
            "dovecot:PATH: Dovecot's authentication server checks the logins, in place "
            "of auth_users.\n"
            "PATH is the socket of a unix_listener of its service auth."),
    TEXTUAL(STRING, server.auth_cleartext, "auth_cleartext", "no",
            "loopback: offer AUTH without TLS to clients on this host."),
    BOUNDED(
        NUMBER, server.auth_failure_limit, "auth_failure_limit", "10", 0, 1000,
        "Failed logins within 10 minutes after which a client address is locked out.\n"
        "0 disables the lockout."),
    TEXTUAL(LIST, server.sender_login, "sender_login", NULL,
            "Table of USER ADDRESS..., one user a line: the only sender addresses that "
            "a user may\n"
            "use. Clients that have not logged in may not use them.\n"
            "ADDRESS: user@domain, domain, .domain (sub-domains), *"),
    TEXTUAL(
        LIST, manager.quotas, "quotas", NULL,
        "Table of WHO LIMIT[,LIMIT], one a line: the recipients that clients which "
        "may relay,\n"
        "and users of sendmail(1), may send to in any second, minute, hour or day.\n"
        "WHO: user:NAME, uid:NUMBER, sender:ADDRESS, sender:DOMAIN (each of its "
        "addresses),\n"
        "domain:DOMAIN (as a whole), with * for each user, address or domain; all.\n"
        "LIMIT: N/s, N/m, N/h, N/d, none. For each kind the first line that matches "
        "counts.\n"
        "Each daemon (of a spool with slices, and each host) counts by itself.\n"
        "Example: user:* 500/d,100/h"),
    TEXTUAL(LIST, server.sender_domains, "sender_domains", NULL,
            "The only domains that users, and clients in relay_from, may send from: "
            "domain,\n"
            ".domain (sub-domains). Unset: any."),
    TEXTUAL(
        BOOL, server.allow_open_relay, "allow_open_relay", "no",
        "Must be set if relay_from has nearly all public addresses. Spammers find an "
        "open relay\n"
        "within an hour."),
    TEXTUAL(LIST, server.proxy_from, "proxy_from", NULL,
            "Proxies trusted to send a PROXY header on listeners with ?proxy: list of "
            "networks."),
    TEXTUAL(LIST, server.etrn, "etrn", "relay",
            "Domains whose waiting mail any client may request with ETRN: a list of "
            "relay (domains\n"
            "of local_domains whose mail goes on to another host), domain, .domain "
            "(sub-domains);\n"
            "or off."),
    TEXTUAL(STRING, server.mt_priority, "mt_priority", "off",
            "Clients whose MT-PRIORITY (RFC 6710) changes the order of delivery: off "
            "(not offered),\n"
            "trusted (clients that may relay; a priority above 0 from others counts as "
            "0), all."),
    BOUNDED(DURATION, server.future_release_ms, "future_release", "0", 0,
            INT64_C(365) * 24 * HOUR,
            "How far ahead clients that may relay can set the time of delivery "
            "(FUTURERELEASE,\n"
            "RFC 4865). 0: not offered."),
    TEXTUAL(LIST, routes, "routes", "* mx",
            "Table of PATTERN TARGET, one a line; the first match wins.\n"
            "PATTERN: user@domain, domain, .domain (sub-domains), *\n"
            "TARGET: mx, smtp://host[:port][?options], lmtp://host:port, "
            "lmtp://unix:/path,\n"
            "maildir:/path/%u[?create=yes], https://[user@]host/path[?sign=name],\n"
            "redirect:address[?allow=domain,...], hold, discard, error:5.1.1 text,\n"
            "[1.2.3.4]:port or host:port (no MX look-up). See petrel.conf(5)."),
    TEXTUAL(STRING, relay, "relay", NULL,
            "Smarthost: short for a last route `* VALUE`. A list of hosts is tried in "
            "order; the\n"
            "first that can be reached gets the mail."),
    SECRET(relay_password, "relay_password",
           "Password of the user in relay = submission://USER@HOST. Prefer "
           "relay_password_file,\n"
           "which names a file with the password."),
    TEXTUAL(STRING, auth_passwords, "auth_passwords", NULL,
            "File with passwords of users in routes, sender_routes and relay, mode "
            "0600. Lines:\n"
            "HOST[:PORT] USER PASSWORD, or @/PATH of a file with a token for XOAUTH2."),
    SECRET_TABLE(oauth, "oauth",
                 "Table of users in routes, sender_routes and relay that log in with "
                 "tokens of OAuth2:\n"
                 "HOST[:PORT] USER PROVIDER KEY=VALUE..., one a line. PROVIDER: "
                 "microsoft, google, custom.\n"
                 "KEY: client (the id), secret, tenant, grant, refresh, scope, token, "
                 "device, authorize.\n"
                 "See petrel.conf(5), Logging in with OAuth2."),
    TEXTUAL(LIST, sender_routes, "sender_routes", NULL,
            "Table of PATTERN TARGET for the sender's address, <> for bounces. "
            "Consulted after\n"
            "routes with other patterns than * and after local mail, before relay and "
            "the route *."),
    TEXTUAL(
        LIST, rewrite, "rewrite", NULL,
        "Table of PATTERN REPLACEMENT, one a line: addresses of submitted mail, as "
        "it leaves.\n"
        "PATTERN: user@domain, domain, .domain, *, local (of hosts that nobody else "
        "knows).\n"
        "REPLACEMENT: user@domain, @domain (keeps the local part), = (keeps the "
        "address).\n"
        "Example: local alerts@example.org"),
    TEXTUAL(LIST, manager.copy_to, "copy_to", NULL,
            "Table of [WHOSE] ADDRESS, one a line: each message that is accepted also "
            "goes to these\n"
            "addresses, once, and nobody hears of it.\n"
            "WHOSE: sender:PATTERN, recipient:PATTERN, * (all mail, also without it).\n"
            "PATTERN: user@domain, domain, .domain (sub-domains). Every line that "
            "matches counts.\n"
            "Example: archive@example.org"),
    TEXTUAL(
        STRING, delivery.bounce_sender, "bounce_sender", "<>",
        "Sender of notifications of failed and delayed mail to the hosts of relay and "
        "routes.\n"
        "An address only for a smarthost that refuses <>."),
    TEXTUAL(
        STRING, local, "local", NULL,
        "Target of mail for local_domains that no route but * matches, for example\n"
        "maildir:/var/mail/%u. Unset: the target of * gets it, unless that is mx: then "
        "the\n"
        "user is unknown."),
    TEXTUAL(LIST, local_domains, "local_domains", NULL,
            "Domains to which any client may send mail. Their mail goes to `local` "
            "when no route\n"
            "but * matches. Unset: hostname."),
    TEXTUAL(LIST, aliases, "aliases", NULL,
            "Files in the form of /etc/aliases (addresses only), read again when they "
            "change."),
    TEXTUAL(
        STRING, root, "root", NULL,
        "Address for mail to root, postmaster and abuse in local_domains and, where "
        "`local` is\n"
        "unset, for mail that programs of this host send to local users without an "
        "alias.\n"
        "`aliases` come before it. Example: alerts@example.org"),
    TEXTUAL(BOOL, srs, "srs", "yes",
            "Whether mail that an alias forwards gets a sender at this host (SRS), so "
            "that SPF\n"
            "permits it."),
    TEXTUAL(STRING, srs_domain, "srs_domain", NULL,
            "Domain of these senders. Unset: the first of local_domains."),
    SECRET_TABLE(srs_secret, "srs_secret",
                 "Secrets that sign these senders; the first signs, all verify. Unset: "
                 "one is made,\n"
                 "in lock/srs of the spool."),
    TEXTUAL(STRING, bounces, "bounces", NULL,
            "Address to which reports about mail of `verp` come, and those of feedback "
            "loops:\n"
            "they are read, not delivered. Example: bounce@example.org"),
    TEXTUAL(
        BOOL, transport.verp, "verp", "no",
        "Whether submitted mail leaves with a sender for each recipient, by which a "
        "report that\n"
        "comes back is recognised: BOUNCES+TAG. One recipient in a transaction then."),
    BOUNDED(SIZE, message_size_limit, "message_size_limit", "50M", 1024,
            INT64_C(1) << 40, "Larger messages are refused."),
    BOUNDED(
        NUMBER, server.recipient_limit, "recipient_limit", "1000", 1, 50000,
        "Recipients of one message that comes by SMTP, at most. For clients that may "
        "not relay\nwith the members of aliases."),
    BOUNDED(NUMBER, server.clients.sessions, "server_session_limit", "1000", 1, 100000,
            "Concurrent incoming sessions, of all clients together."),
    BOUNDED(NUMBER, server.clients.sessions_per_client, "client_session_limit", "50", 1,
            100000,
            "Concurrent sessions of one client: an IPv4 address, or an IPv6 network of "
            "64 bits."),
    TEXTUAL(STRING, server.clients.each[CLIENT_USAGE_SESSION], "client_session_rate",
            "none",
            "Connections of one client: N/s, N/m, N/h or N/d. All N may come in one "
            "burst, or B\n"
            "with ,burst=B appended; after a burst the rate holds.\n"
            "A client is an IPv4 address, or an IPv6 network of 64 bits."),
    TEXTUAL(STRING, server.clients.each[CLIENT_USAGE_MESSAGE], "client_message_rate",
            "none", "Messages of one client."),
    TEXTUAL(STRING, server.clients.each[CLIENT_USAGE_RECIPIENT],
            "client_recipient_rate", "none",
            "Recipients that one client names, including refused ones, and members of "
            "aliases."),
    TEXTUAL(STRING, server.clients.all[CLIENT_USAGE_SESSION], "server_session_rate",
            "none", "Connections of all clients together."),
    TEXTUAL(STRING, server.clients.all[CLIENT_USAGE_MESSAGE], "server_message_rate",
            "none", "Messages of all clients together."),
    TEXTUAL(STRING, server.clients.all[CLIENT_USAGE_RECIPIENT], "server_recipient_rate",
            "none", "Recipients of all clients together."),
    TEXTUAL(LIST, server.clients.exempt, "rate_exempt", "127.0.0.0/8, ::1",
            "Networks whose clients these rates neither limit nor count."),
    WORD(server.received, "received", "full", SERVER_RECEIVED_FULL, receiveds,
         "Received field of mail from clients that may relay: full, short (without "
         "client,\n"
         "HELO and recipient), none (but short where the message has one)."),
    TEXTUAL(BOOL, server.check_helo, "check_helo", "no",
            "Refuse mail of untrusted clients whose HELO is our own name, or is "
            "neither a full\n"
            "domain name nor an address literal."),
    TEXTUAL(BOOL, server.check_sender, "check_sender", "no",
            "Refuse mail of untrusted clients whose sender has no full domain name, "
            "and accept\n"
            "their bounces only with a single recipient."),
    BOUNDED(DURATION, server.greet_delay_ms, "greet_delay", "0s", 0, 60000,
            "Delays the greeting for untrusted clients. Clients that speak before it "
            "are rejected."),
    BOUNDED(NUMBER, server.server_tls_session_limit, "server_tls_session_limit", "200",
            0, 100000,
            "Concurrent incoming sessions with TLS, 45 KiB each. 0: no limit of their "
            "own."),
    BOUNDED(DURATION, server.handshake_timeout_ms, "smtpd_starttls_timeout", "20s",
            1000, HOUR, "Time limit for the TLS handshake of a client."),
    BOUNDED(NUMBER, server.hop_limit, "hopcount_limit", "50", 1, 1000,
            "A message with more Received lines is refused as a loop."),
    BOUNDED(NUMBER, server.error_limit, "smtpd_hard_error_limit", "20", 1, 10000,
            "Errors after which a client is disconnected."),
    BOUNDED(NUMBER, server.soft_error_limit, "smtpd_soft_error_limit", "10", 0, 10000,
            "Errors after which each further reply to an error is delayed longer than "
            "the last."),
    BOUNDED(DURATION, server.error_delay_ms, "smtpd_error_sleep_time", "1s", 0, 30000,
            "First delay of such a reply, and the increment of each further one; 30s "
            "at most.\n"
            "0: no delay."),
    BOUNDED(NUMBER, server.junk_limit, "smtpd_junk_command_limit", "100", 0, 100000,
            "RSET, NOOP, EHLO and the like without a message in between; more count as "
            "errors of an\n"
            "untrusted client. 0: no limit."),
    BOUNDED(
        DURATION, server.idle_timeout_ms, "smtpd_timeout", "5m", 1000, 24 * HOUR,
        "A client that is silent, or needs longer for one command, is disconnected."),
    BOUNDED(DURATION, server.data_timeout_ms, "smtpd_data_timeout", "3m", 1000,
            24 * HOUR,
            "A client that is silent for longer within a message is disconnected."),
    BOUNDED(NUMBER, server.data_rate_min, "smtpd_min_data_rate", "50", 0, 1000000,
            "Bytes per second of a message below which a client is disconnected. 0: no "
            "minimum."),
    BOUNDED(DURATION, drain_timeout_ms, "drain_timeout", "20s", 0, HOUR,
            "How long SIGTERM waits for sessions in the middle of a message."),
    BOUNDED(DURATION, drain_delay_ms, "drain_delay", "5s", 0, HOUR,
            "How long `petrel drain` still accepts mail, after readiness has failed."),
    WORD(hands_over, "stop", "keep", 0, stops,
         "The queue at SIGTERM: keep, it stays; or hand_over, the other hosts of the "
         "cluster take\n"
         "it before the daemon ends, as by `petrel drain`."),
    BOUNDED(DURATION, hand_over_timeout_ms, "hand_over_timeout", "100s", 1000,
            24 * HOUR,
            "How long that may take at most; mail left then stays in the spool."),
    TEXTUAL(LIST, dns_servers, "dns_servers", NULL,
            "Name servers: list of ADDRESS[:PORT]. Unset: the system's."),
    WORD(dns_trust, "dns_trust", "auto", 0, trusts,
         "Whether name servers are trusted to validate (DNSSEC): yes, no, or auto: "
         "those on this\n"
         "host, and those of a resolv.conf with \"options trust-ad\"."),
    WORD(no_dane, "dane", "auto", 0, danes,
         "Whether TLSA records of mail hosts are obeyed (DANE): auto, where name "
         "servers are\n"
         "trusted to validate, or no."),
    TEXTUAL(BOOL, delivery.mta_sts, "mta_sts", "yes",
            "Whether policies of MTA-STS are obeyed, where there are CA certificates."),
    TEXTUAL(BOOL, manager.tls_required_header, "tls_required_header", "yes",
            "Whether the field \"TLS-Required: No\" frees a message from DANE and "
            "MTA-STS (RFC 8689)."),
    BOUNDED(
        NUMBER, mta_sts_port, "mta_sts_port", "443", 1, 65535,
        "Port of HTTPS from which policies of MTA-STS are fetched; another one is for "
        "tests."),
    BOUNDED(NUMBER, delivery.smtp_port, "smtp_port", "25", 1, 65535,
            "Port of deliveries by MX."),
    TEXTUAL(LIST, delivery.smtp_bind, "smtp_bind", NULL,
            "Source addresses of deliveries: one IPv4, one IPv6. Unset: the system "
            "chooses."),
    WORD(delivery.smtp_family, "smtp_family", "any", TARGET_FAMILY_ANY, target_families,
         "Addresses that deliveries may go to: any, ipv4 or ipv6."),
    TEXTUAL(LIST, dkim_keys, "dkim_keys", NULL,
            "Keys that sign outgoing mail (DKIM): table of DOMAIN SELECTOR PATH, one a "
            "line, or a\n"
            "directory of files SELECTOR._domainkey.DOMAIN.pem as `petrel dkim-key` "
            "makes them.\n"
            "Unset: nothing is signed."),
    TEXTUAL(STRING, tls_ca, "tls_ca", NULL,
            "CA certificates used to verify next hops (tls=verify): a PEM file, or a "
            "directory of\n"
            "such files. Unset: the system's bundle."),
    BOUNDED(DURATION, delivery.connect_timeout_ms, "smtp_connect_timeout", "30s", 100,
            HOUR, "Time limit for a connection to one address of a host."),
    BOUNDED(NUMBER, delivery.data_rate_min, "smtp_min_data_rate", "500", 0, 1000000,
            "Bytes per second below which a delivery to a slow host is deferred. 0: no "
            "minimum."),
    BOUNDED(NUMBER, delivery.mx_address_limit, "smtp_mx_address_limit", "5", 1, 40,
            "Addresses of a destination tried before a delivery is deferred."),
    BOUNDED(DURATION, delivery.reuse_idle_ms, "smtp_connection_cache_time_limit", "2s",
            0, HOUR, "How long an idle connection is kept for more mail."),
    BOUNDED(NUMBER, manager.sched.active_limit, "active_limit", "20000", 1, 1000000,
            "Messages in memory; more wait on disk."),
    BOUNDED(NUMBER, manager.sched.recipient_limit, "active_recipient_limit", "40000", 1,
            100000000,
            "Recipients of the messages in memory; more wait on disk. An eighth of it "
            "is for\nmessages with few recipients."),
    BOUNDED(NUMBER, manager.sched.session_limit, "delivery_session_limit", "500", 1,
            100000, "Concurrent deliveries, to all destinations together."),
    BOUNDED(NUMBER, transport.initial_concurrency, "initial_destination_concurrency",
            "5", 1, 10000, "Initial concurrency: sessions to a destination."),
    BOUNDED(NUMBER, transport.concurrency_limit,
            "default_destination_concurrency_limit", "20", 0, 10000,
            "Maximal concurrency: sessions to a destination. 0: no limit."),
    TEXTUAL(STRING, positive_feedback,
            "default_destination_concurrency_positive_feedback", "1",
            "Increase of the concurrency per success: 1, a/b, a/concurrency, "
            "a/sqrt_concurrency."),
    TEXTUAL(STRING, negative_feedback,
            "default_destination_concurrency_negative_feedback", "1",
            "Decrease of the concurrency per failure; the same forms."),
    BOUNDED(NUMBER, transport.failed_cohort_limit,
            "default_destination_concurrency_failed_cohort_limit", "1", 0, 10000,
            "Failed cohorts after which a destination is considered dead. 0: never."),
    BOUNDED(NUMBER, transport.recipient_limit, "default_destination_recipient_limit",
            "50", 0, 50000, "Recipients in one transaction. 0: no limit."),
    BOUNDED(DURATION, transport.rate_delay_ms, "default_destination_rate_delay", "0s",
            0, 24 * HOUR, "Pause after each delivery to a destination."),
    BOUNDED(DURATION, transport.transport_rate_delay_ms, "default_transport_rate_delay",
            "0s", 0, 24 * HOUR,
            "Time between the beginnings of deliveries to all destinations of a "
            "target. When set,\n"
            "they are made one at a time."),
    TEXTUAL(STRING, destination_rate, "default_destination_rate", "none",
            "Transactions with a site: N/s, N/m, N/h or N/d, optionally with ,burst=B "
            "appended."),
    TEXTUAL(BOOL, transport.adaptive, "default_destination_adaptive", "yes",
            "Learn how many sessions and what rate a site accepts, and whether it "
            "slows down.\n"
            "no: Postfix's rules only."),
    BOUNDED(NUMBER, transport.reuse_limit, "default_connection_reuse_count_limit", "0",
            0, 10000, "Transactions over one connection. 0: no limit."),
    TEXTUAL(LIST, delivery.providers, "providers", NULL,
            "NAME=PATTERN,PATTERN: domains all of whose mail exchangers match are one "
            "site."),
    BOUNDED(NUMBER, manager.sched.site_share, "site_active_share", "50", 0, 100,
            "Percentage of a full active_limit that one site may use. 0: no limit."),
    TEXTUAL(BOOL, manager.sender_turns, "sender_turns", "yes",
            "Senders take turns at a site. no: mail goes in the order of its arrival."),
    BOUNDED(SIZE, manager.bulk_size, "bulk_size", "10M", 0, INT64_C(1) << 40,
            "A larger message counts as bulk: its sender gets fewer turns. 0: no "
            "message does."),
    BOUNDED(NUMBER, transport.slot_cost, "default_delivery_slot_cost", "5", 0, 10000,
            "Transactions of a large message that earn one slot, by which a "
            "transaction of small\n"
            "mail may pass. 0: none may."),
    BOUNDED(NUMBER, transport.slot_loan, "default_delivery_slot_loan", "3", 0, 10000,
            "Slots that may be used before they are earned."),
    BOUNDED(NUMBER, transport.slot_discount, "default_delivery_slot_discount", "50", 0,
            100, "Percentage of the slots needed that may be missing."),
    BOUNDED(NUMBER, transport.minimum_slots, "default_minimum_delivery_slots", "3", 0,
            10000,
            "A message that could never earn this number of slots does not count as "
            "large."),
    BOUNDED(DURATION, transport.minimal_backoff_ms, "minimal_backoff_time", "300s", 1,
            24 * HOUR, "Shortest wait before another attempt."),
    BOUNDED(DURATION, transport.maximal_backoff_ms, "maximal_backoff_time", "4000s", 1,
            240 * HOUR, "Longest wait before another attempt."),
    BOUNDED(
        DURATION, transport.lifetime_ms, "maximal_queue_lifetime", "5d", 0,
        100 * 24 * HOUR,
        "Mail that is still undelivered after this time is returned to its sender."),
    BOUNDED(DURATION, transport.bounce_lifetime_ms, "bounce_queue_lifetime", "5d", 0,
            100 * 24 * HOUR,
            "Bounces that are still undelivered after this time are discarded."),
    BOUNDED(DURATION, transport.delay_warning_ms, "delay_warning_time", "0h", 0,
            100 * 24 * HOUR,
            "The sender is notified, once, of mail that is still undelivered after "
            "this time.\n"
            "0: never."),
    BOUNDED(SIZE, manager.bounce_size_limit, "bounce_size_limit", "50K", 0,
            INT64_C(1) << 30,
            "Larger messages are returned as header only, even with RET=FULL."),
    TEXTUAL(
        BOOL, manager.suppression.is_on, "suppress", "no",
        "A recipient is not tried again after a hard bounce, three doubtful ones in "
        "a row,\n"
        "or a complaint: see `petrel suppress`."),
    WORD(manager.suppression.by_domain, "suppress_scope", "all", 0, suppress_scopes,
         "all: for all senders; domain: for those of the domain whose mail it was."),
    BOUNDED(DURATION, manager.suppression.hard_ms, "suppress_bounce_lifetime", "90d", 0,
            INT64_C(36500) * 24 * HOUR,
            "For how long a bounce suppresses an address. 0: for ever."),
    BOUNDED(DURATION, manager.suppression.complaint_ms, "suppress_complaint_lifetime",
            "0", 0, INT64_C(36500) * 24 * HOUR,
            "For how long a complaint suppresses an address. 0: for ever."),
    BOUNDED(NUMBER, manager.suppression.limit, "suppress_limit", "100000", 1,
            SUPPRESSION_LIMIT_MAX,
            "Addresses that are kept; 100,000 take some 8 MB of memory."),
    BOUNDED(NUMBER, fragments.limits.parts, "defrag_max_parts", "1000", 10, 100000,
            "Fragments of one message (routes with ?defragment=yes); those of a "
            "message with more\n"
            "are delivered as they are."),
    BOUNDED(SIZE, fragments.limits.set_bytes, "defrag_max_size", "128M", 0,
            INT64_C(1) << 34, "Bytes of all fragments of one message. 0: no limit."),
    BOUNDED(NUMBER, fragments.limits.sets, "defrag_max_sets", "10000", 1, 1000000,
            "Incomplete messages whose fragments are held; beyond it the oldest are "
            "delivered as\n"
            "fragments."),
    BOUNDED(NUMBER, fragments.limits.sender_sets, "defrag_max_sets_per_sender", "100",
            0, 1000000,
            "Incomplete messages of one sender; fragments of more are delivered as "
            "they are.\n"
            "0: no limit."),
    BOUNDED(NUMBER, fragments.limits.client_sets, "defrag_max_sets_per_client", "200",
            0, 1000000,
            "Incomplete messages of one client: an IPv4 network of 24 bits, an IPv6 "
            "network of 64.\n"
            "0: no limit."),
    BOUNDED(SIZE, fragments.limits.bytes, "defrag_max_total", "2G", 0, INT64_C(1) << 44,
            "Bytes of all fragments that are held; beyond it the oldest are delivered "
            "as they are.\n"
            "0: no limit. Unset: 2G, or a tenth of the spool's file system if that is "
            "less."),
    WORD(fragments.keying, "defrag_key", "sender", 0, keyings,
         "Properties that fragments with the same id must share to belong together: "
         "sender (also\n"
         "the login, or else trust), strict (also the client's network), id (nothing "
         "else)."),
    TEXTUAL(BOOL, fragments.keeps_subject, "defrag_subject_fallback", "no",
            "A reassembled message without a Subject of its own gets that of its first "
            "fragment."),
    WORD(fragments.on_timeout, "defrag_on_timeout", "release", 0, timeouts,
         "Treatment of incomplete messages after half of the first time of `notices`: "
         "release,\n"
         "bounce or hold."),
    WORD(
        server.refuses_partial, "partial_policy", "pass", 0, partials,
        "Fragments for recipients whose routes do not reassemble them: pass or reject\n"
        "(550 5.6.1)."),
    TEXTUAL(STRING, defrag_registry, "defrag_registry", "local",
            "Where several hosts agree which of them reassembles a message: local (one "
            "host only),\n"
            "dir:/path (a directory that all hosts share), or Redis 7 or Valkey:\n"
            "redis://[user@]host[:port][/database], rediss://..."),
    SECRET(
        defrag_registry_password, "defrag_registry_password",
        "Password for defrag_registry at Redis. Prefer defrag_registry_password_file."),
    TEXTUAL(STRING, defrag_host, "defrag_host", NULL,
            "Name of this host in the registry, permanent and unique; optionally the "
            "address from\n"
            "which it sends fragments to the other hosts: NAME or NAME=ADDRESS. Unset: "
            "hostname."),
    TEXTUAL(
        LIST, defrag_peers, "defrag_peers", NULL,
        "The other hosts, which get fragments of the messages that they reassemble:\n"
        "NAME=ADDRESS[:PORT] or NAME=smtp://ADDRESS[:PORT]?OPTIONS. Clients at these "
        "addresses\n"
        "are trusted as peers. The list may contain this host."),
    TEXTUAL(STRING, cluster, "cluster", NULL,
            "Name of the group of hosts that share the limits of next hops. Unset: "
            "there is none,\n"
            "but for the slices of this host."),
    TEXTUAL(STRING, cluster_host, "cluster_host", NULL,
            "Name of this host in the group, permanent and unique. Unset: the name in "
            "defrag_host,\n"
            "or hostname. With slices each adds its number: NAME.SLICE."),
    TEXTUAL(LIST, cluster_redis, "cluster_redis", NULL,
            "Redis 6.2 or Valkey, which divides the limits: list of\n"
            "redis://[user@]host[:port][/database] or rediss://..., of which the first "
            "that takes\n"
            "writes is used; or none: each host has an exact part. Unset: "
            "defrag_registry, if that is\n"
            "Redis."),
    SECRET(cluster_redis_password, "cluster_redis_password",
           "Password for cluster_redis. Prefer cluster_redis_password_file."),
    TEXTUAL(LIST, cluster_peers, "cluster_peers", NULL,
            "The other hosts of the group: list of NAME=ADDRESS:PORT. Needed without "
            "Redis. The list\n"
            "may contain this host."),
    TEXTUAL(STRING, cluster_address, "cluster_address", NULL,
            "Where the other hosts of the group reach this one: ADDRESS:PORT. Unset: "
            "the address of\n"
            "`listen` with ?peer, unless that is 0.0.0.0 or [::]."),
    SECRET_TABLE(cluster_secret, "cluster_secret",
                 "Secrets of the group, one a line, each of 32 bytes at least: the "
                 "first is used, all are\n"
                 "accepted. They give full access to mail. Prefer "
                 "cluster_secret_file."),
    TEXTUAL(STRING, cluster_egress, "cluster_egress", "shared",
            "Addresses that receivers see: shared (one address for all hosts), own "
            "(each host has\n"
            "its own; only logins share limits), or a NAME (hosts with that name have "
            "one)."),
    TEXTUAL(LIST, copies.copies, "copies", NULL,
            "Redis 6.2 or Valkey, which keeps a copy of each message until it ends: "
            "list of\n"
            "redis://[user@]host[:port][/database] or rediss://..., of which the first "
            "that takes\n"
            "writes is used. A message is accepted when it is durable on our disk and "
            "there. Unset:\n"
            "there are no copies."),
    SECRET(copies.password, "copies_password",
           "Password for copies. Prefer copies_password_file."),
    TEXTUAL(BOOL, copies.required, "copies_required", "yes",
            "Refuse new mail (451 4.3.0) while the server of `copies` cannot keep a "
            "copy. no: accept\n"
            "it with one copy, and copy it later."),
    BOUNDED(NUMBER, copies.replicas, "copies_replicas", "0", 0, COPIES_REPLICAS_MAX,
            "Replicas of that server that must have a copy, too."),
    BOUNDED(SIZE, copies.message_max, "copies_message_max", "1M", 1024, 1024 * 1024,
            "Content up to this size is one piece there; larger content is chunks of "
            "256 KiB."),
    BOUNDED(DURATION, copies.adopt_after_ms, "adopt_after", "0", 0, 30 * 24 * HOUR,
            "Adopt the copies of a host of the group that has been silent for this "
            "long. 0: never."),
    BOUNDED(SIZE, manager.queue.journal_size, "journal_size", "64M", 0,
            INT64_C(1) << 34,
            "Ring of files for mail that is delivered at the first attempt. 0: no "
            "journal."),
    BOUNDED(SIZE, manager.queue.journal_message_max, "journal_message_max", "256K",
            1024, INT64_C(1) << 24,
            "A larger message is stored in files of its own from the beginning."),
    BOUNDED(NUMBER, slices, "slices", "1", 1, ID_SLICES_MAX,
            "Daemons that share the spool and the limits of next hops: a power of two. "
            "Each has its own\n"
            "`slice` and `control`, and `listen` of its own or with ?share."),
    BOUNDED(NUMBER, slice, "slice", "0", 0, ID_SLICES_MAX - 1,
            "Part of the spool that this daemon handles: 0 to slices - 1."),
    TEXTUAL(STRING, control, "control", NULL,
            "Control socket. Unset: SPOOL/control; with slices: SPOOL/control.SLICE."),
    TEXTUAL(
        LIST, http, "http", NULL,
        "Addresses where HTTP is answered, for health checks, metrics and programs: "
        "list of\n"
        "ADDRESS:PORT[?OPTION&...], unix:PATH[?OPTION&...] or fd:NAME[?OPTION&...].\n"
        "Unset: nowhere.\n"
        "Options: tls, page=no (health and metrics alone), metrics=no,\n"
        "access=read, access=operate (clients need no key; loopback and Unix sockets "
        "alone);\n"
        "for unix:PATH also mode=0660, uid=NUMBER. Example: 127.0.0.1:8025"),
    TEXTUAL(
        LIST, http_names, "http_names", NULL,
        "Further host names under which HTTP is asked for, as by a proxy; * for any. "
        "Local names,\n"
        "IP addresses and `hostname` need not be listed."),
    SECRET(
        http_token, "http_token",
        "Token of programs that may read and operate by HTTP (Authorization: Bearer), "
        "16\n"
        "characters or more. Prefer http_token_file, which names a file with it."),
    SECRET(http_read_token, "http_read_token",
           "Token of programs that may only read. Prefer http_read_token_file."),
    TEXTUAL(STRING, http_keys, "http_keys", NULL,
            "File with the keys of programs that may send mail by HTTP "
            "(POST /v1/messages), made\n"
            "by `petrel key add`. Unset: nobody may."),
    TEXTUAL(BOOL, show_subjects, "show_subjects", "no",
            "Show subjects of messages in the queue of the page, to those who may "
            "operate. They are\n"
            "content."),
    BOUNDED(NUMBER, metrics_sites, "metrics_sites", "20", 0, 20,
            "Sites with most mail that have metrics of their own; the others are one."),
    BOUNDED(SIZE, history.size, "history_size", "16M", 0, INT64_C(1) << 34,
            "Space for the history that `petrel trace` searches, 256K at least; 0: no "
            "history. Unset:\n"
            "1% of the spool's file system if that is less than 16M."),
    BOUNDED(DURATION, history.age_ms, "history_age", "30d", HOUR, 3650 * 24 * HOUR,
            "Age at which the history's files go even if there is space."),
    TEXTUAL(STRING, post.url, "events", NULL,
            "The program that receives events of mail: https://HOST/PATH (webhook), "
            "http:// to\n"
            "loopback, private addresses and names of one label, or file:/PATH. Unset: "
            "nowhere."),
    SECRET_TABLE(post.secrets, "events_secret",
                 "Secrets that sign webhooks (Standard Webhooks): list of whsec_BASE64 "
                 "or other texts\n"
                 "of 24 characters and more; all of them sign. Prefer "
                 "events_secret_file."),
    TEXTUAL(LIST, events_types, "events_types",
            "delivered, deferred, bounced, expired, bounced_later, complained, quota, "
            "suppressed, trouble, recovered",
            "Events that are reported: list of these, and accepted."),
    BOUNDED(NUMBER, post.batch, "events_batch", "100", 1, 1000,
            "Events in one request, at most."),
    BOUNDED(DURATION, post.linger_ms, "events_linger", "2s", 0, HOUR,
            "How long events wait for others, to go in one request."),
    BOUNDED(SIZE, events_max, "events_max", "64M", 2097152, INT64_C(1) << 34,
            "Space for events that wait; beyond it the oldest are lost."),
    TEXTUAL(
        LIST, ready_when, "ready_when", "accepting",
        "Conditions of readiness: list of accepting (mail is accepted), upstream (no "
        "smarthost\n"
        "has been down for longer than canary_grace) and age:30m (no message that is "
        "not held is older)."),
    BOUNDED(DURATION, canary_interval_ms, "canary_interval", "1h", 0, 365 * 24 * HOUR,
            "How often each smarthost that Petrel logs in to is asked whether it takes "
            "mail, while\n"
            "none flows. 0: never."),
    BOUNDED(DURATION, canary_grace_ms, "canary_grace", "5m", 0, 24 * HOUR,
            "How long a smarthost may be down before ready_when = upstream fails."),
    WORD(log_style, "log_style", "petrel", 0, styles, "petrel, postfix or json."),
    TEXTUAL(STRING, log_to, "log_to", "stderr",
            "stderr, syslog (/dev/log) or syslog:PATH, its socket."),
    WORD(log_level, "log_level", "info", 0, levels, "error, warning, info or debug."),
    WORD(log_addresses, "log_addresses", "full", 0, maskings,
         "Addresses in log lines and events: full, domain (***@example.org) or hash "
         "(the "
         "same\n"
         "digits in place of *** for the same address)."),
    {NULL, SETTING_STRING, 0, NULL, 0, 0, false, NULL, 0, NULL},
};
