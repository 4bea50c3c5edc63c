/* The table of the other names of settings. */
#include "admin/settings/synonyms.h"

#define SAME(name, key)                                                                \
    {                                                                                  \
        name, key, NULL, NULL                                                          \
    }
#define REFUSED(name, help)                                                            \
    {                                                                                  \
        name, NULL, NULL, "a setting of Postfix; " help                                \
    }

/* Without brackets Postfix looks up MX records, and `relay` does not. */
static bool
takes_bracketed(struct text value)
{
    struct text rest = value, word;
    while (text_word(&rest, ", \t\r\n", &word))
        if (word.at[0] != '[')
            return false;
    return true;
}

static const char relayhost_help[] =
    "without brackets Postfix looks up MX records; write relay = HOST:PORT to connect "
    "to HOST itself, or relayhost = [HOST]:PORT";

const struct setting_synonym synonyms_rows[] = {
    SAME("myhostname", "hostname"),
    SAME("mydestination", "local_domains"),
    SAME("mynetworks", "relay_from"),
    SAME("postscreen_greet_wait", "greet_delay"),
    SAME("qmgr_message_active_limit", "active_limit"),
    SAME("qmgr_message_recipient_limit", "active_recipient_limit"),
    SAME("smtp_bind_address", "smtp_bind"),
    SAME("smtp_tls_CAfile", "tls_ca"),
    SAME("smtp_tls_CApath", "tls_ca"),
    SAME("smtpd_recipient_limit", "recipient_limit"),
    SAME("smtpd_tls_cert_file", "tls_certificate"),
    SAME("smtpd_tls_key_file", "tls_key"),
    SAME("tls_required_enable", "tls_required_header"),
    {"relayhost", "relay", takes_bracketed, relayhost_help},

    REFUSED("alias_maps", "write aliases = /etc/aliases, without hash: before it"),
    REFUSED("always_bcc", "write copy_to = ADDRESS"),
    REFUSED("content_filter",
            "write a route to the filter: routes = * smtp://HOST:PORT"),
    REFUSED("defer_transports",
            "write routes = * hold, and petrel queue release --all sends what waits"),
    REFUSED("default_process_limit",
            "write server_session_limit = NUMBER for clients and "
            "delivery_session_limit = NUMBER for deliveries"),
    REFUSED("home_mailbox", "write local = maildir:PATH/%u"),
    REFUSED("inet_interfaces", "write listen = ADDRESS:PORT, for example "
                               "listen = 0.0.0.0:25, [::]:25"),
    REFUSED("inet_protocols",
            "the addresses in listen = ADDRESS:PORT say it for mail "
            "in; for deliveries write smtp_family = any, ipv4 or ipv6"),
    REFUSED("mail_owner", "write user = NAME"),
    REFUSED("mailbox_command", "write local = maildir:PATH/%u or "
                               "local = lmtp://unix:/PATH"),
    REFUSED("mailbox_transport", "write local = lmtp://unix:/PATH"),
    REFUSED("queue_directory", "write spool = DIRECTORY, not that of Postfix: their "
                               "queue files differ"),
    REFUSED("recipient_bcc_maps", "write copy_to = recipient:PATTERN ADDRESS"),
    REFUSED("relay_domains", "write routes = DOMAIN TARGET and add DOMAIN to "
                             "local_domains"),
    REFUSED("sender_bcc_maps", "write copy_to = sender:PATTERN ADDRESS"),
    REFUSED("sender_dependent_relayhost_maps", "write sender_routes = PATTERN TARGET"),
    REFUSED("smtp_address_preference", "write smtp_family = ipv4 or ipv6"),
    REFUSED("smtp_bind_address6", "write smtp_bind = IPV4-ADDRESS, IPV6-ADDRESS"),
    REFUSED("smtp_helo_name", "write hostname = NAME, or TARGET?helo=NAME in a route"),
    REFUSED("smtp_sasl_auth_enable", "write relay = submission://USER@HOST and "
                                     "relay_password_file = FILE"),
    REFUSED("smtp_sasl_password_maps", "write auth_passwords = FILE, with lines "
                                       "HOST[:PORT] USER PASSWORD"),
    REFUSED("smtp_tls_security_level", "write ?tls=none, may, encrypt or verify behind "
                                       "a target in routes or relay"),
    REFUSED("smtpd_client_connection_count_limit",
            "write client_session_limit = NUMBER, which counts clients in relay_from "
            "too"),
    REFUSED("smtpd_client_connection_rate_limit", "write client_session_rate = N/m"),
    REFUSED("smtpd_client_message_rate_limit", "write client_message_rate = N/m"),
    REFUSED("smtpd_client_recipient_rate_limit", "write client_recipient_rate = N/m"),
    REFUSED("smtpd_client_restrictions",
            "write relay_from = NETWORKS and auth_users = FILE to say who may relay"),
    REFUSED("smtpd_helo_restrictions", "write check_helo = yes"),
    REFUSED("smtpd_recipient_restrictions",
            "write relay_from = NETWORKS and auth_users = FILE to say who may relay"),
    REFUSED(
        "relay_clientcerts",
        "write relay_client_certificates = FILE, with lines of a SHA-256 fingerprint "
        "and a name"),
    REFUSED("smtpd_relay_restrictions",
            "write relay_from = NETWORKS and auth_users = FILE to say who may relay"),
    REFUSED("smtpd_sasl_auth_enable",
            "write auth_users = FILE, made by `petrel passwd USER`"),
    REFUSED("smtpd_sender_login_maps", "write sender_login = USER ADDRESS..., one user "
                                       "a line"),
    REFUSED("smtpd_sender_restrictions",
            "write check_sender = yes, or sender_domains = DOMAIN, ..."),
    REFUSED("smtpd_tls_auth_only",
            "AUTH is offered under TLS alone; write "
            "auth_cleartext = loopback for clients on this host"),
    REFUSED("smtpd_tls_chain_files", "write tls_certificate = FILE and tls_key = FILE"),
    REFUSED("smtpd_tls_security_level",
            "STARTTLS is offered when tls_certificate = FILE is set"),
    REFUSED("smtpd_upstream_proxy_protocol",
            "write listen = ADDRESS:PORT?proxy and proxy_from = NETWORKS"),
    REFUSED("transport_maps", "write routes = PATTERN TARGET, one a line"),
    REFUSED("virtual_alias_maps",
            "write the lines as NAME: ADDRESS into a file that aliases names"),
    REFUSED("virtual_mailbox_base", "write local = maildir:PATH/%u"),
    REFUSED("virtual_mailbox_domains", "write local_domains = DOMAIN, ... and "
                                       "local = maildir:PATH/%u"),
    {NULL,        NULL,    NULL,            NULL          },
};
