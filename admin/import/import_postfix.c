/* Postfix: main.cf and the maps that it names. */
#include "admin/import/import.h"

#include "admin/settings/options.h"
#include "admin/settings/synonyms.h"
#include "base/settings/settings_value.h"

#include <ctype.h>
#include <string.h>
#include <unistd.h>

enum { POSTFIX_DEPTH_MAX = 10, POSTFIX_NAMES_MAX = 2000, POSTFIX_NAME_MAX = 256 };

/* --- $name ------------------------------------------------------------------------ */

static struct text
postfix_host(struct import *im)
{
    char host[POSTFIX_NAME_MAX] = "";
    struct text own = import_value(im, "myhostname");
    if (own.length == 0 && gethostname(host, sizeof(host) - 1) == 0)
        own = text_from(import_keep(im, text_from(host)));
    return own;
}

static struct text
postfix_named(struct import *im, const char *name)
{
    static const char *const presets[] = {
        "config_directory",   "/etc/postfix",   "queue_directory",
        "/var/spool/postfix", "data_directory", "/var/lib/postfix",
        "myorigin",           "$myhostname",    NULL};
    const struct import_line *line = import_find(im, name);
    struct text host = postfix_host(im);
    if (line != NULL)
        return text_from(line->value);
    for (size_t i = 0; presets[i] != NULL; i += 2)
        if (strcmp(name, presets[i]) == 0)
            return text_from(presets[i + 1]);
    if (strcmp(name, "myhostname") == 0)
        return host;
    size_t dot = text_find(host, '.');
    bool is_domain = strcmp(name, "mydomain") == 0 && dot != TEXT_NONE;
    return is_domain ? text_after(host, dot + 1) : TEXT("");
}

/* At most POSTFIX_NAMES_MAX names, and within each other as many as depth says: there are
 * circles. */
static void
postfix_expand(struct import *im, struct text value, unsigned depth, struct buffer *out)
{
    while (value.length > 0) {
        size_t dollar = text_find(value, '$'), end = 0;
        (void)!buffer_add(out, text_before(value, dollar));
        value = dollar == TEXT_NONE ? TEXT("") : text_after(value, dollar + 1);
        bool bracket = value.length > 0 && (value.at[0] == '{' || value.at[0] == '(');
        value = text_after(value, bracket);
        while (end < value.length &&
               (value.at[end] == '_' || isalnum((unsigned char)value.at[end])))
            end++;
        const char *name = import_keep(im, text_before(value, end));
        value = text_after(value, end + bracket);
        if (end > 0 && depth < POSTFIX_DEPTH_MAX && im->names++ < POSTFIX_NAMES_MAX)
            postfix_expand(im, postfix_named(im, name), depth + 1, out);
    }
}

static void
postfix_share(struct import_line *maps)
{
    import_say(maps, IMPORT_TAKEN, NULL);
    maps->setting = "auth_passwords";
}

/* Logins are read before the acts, which need them. */
static void
postfix_begin(struct import *im)
{
    for (size_t i = 0, count = im->count; i < count; i++) {
        struct import_line *line = &im->lines[i];
        struct buffer value;
        buffer_init(&value, IMPORT_VALUE_MAX);
        if (import_find(im, line->name) != line)
            import_say(line, IMPORT_NEEDLESS, "a later line has the same name");
        postfix_expand(im, text_from(line->value), 0, &value);
        line->value = import_keep(im, buffer_text(&value));
        buffer_forget(&value);
    }
    struct import_line *maps = import_find(im, "smtp_sasl_password_maps");
    const char *path = maps != NULL ? strstr(maps->value, ":/") : NULL;
    struct import_line *all;
    if (maps == NULL)
        return;
    import_say(maps, IMPORT_LEFT,
               "only maps of text are read; write auth_passwords = FILE");
    if (strncmp(maps->value, "static:", 7) == 0) { /* of any host */
        all = import_add(im, maps->file, maps->number, TEXT("*"),
                         text_from(maps->value + 7));
        if (all != NULL)
            import_take_login(im, all), all->of = maps->name;
        postfix_share(maps);
    } else if (path != NULL &&
               import_entries(im, maps, text_from(path + 1), " \t", import_take_login))
        postfix_share(maps);
}

/* --- Next hops -------------------------------------------------------------------- */

/* sender: "", or whose login is tried first. NULL: it is no next hop. */
static const char *
postfix_target(struct import *im, struct text nexthop, struct text sender)
{
    struct import_hop hop = {0};
    struct text level = import_value(im, "smtp_tls_security_level");
    nexthop = text_trim(nexthop);
    if (!import_split_host(nexthop, &hop))
        return NULL;
    if (import_is_yes(import_value(im, "smtp_sasl_auth_enable")) &&
        (sender.length == 0 || !import_find_login(im, sender, &hop)) &&
        !import_find_login(im, nexthop, &hop))
        (void)import_find_login(im, hop.host, &hop);
    if (import_is_yes(import_value(im, "smtp_tls_wrappermode")))
        hop.tls = IMPORT_TLS_FIRST;
    else if (text_equal(level, TEXT("verify")) || text_equal(level, TEXT("secure")))
        hop.tls = IMPORT_TLS_START;
    else if (hop.user.length == 0 &&
             (text_equal(level, TEXT("encrypt")) ||
              import_is_yes(import_value(im, "smtp_enforce_tls"))))
        hop.tls = IMPORT_TLS_ENCRYPT;
    else if (text_equal(level, TEXT("none")))
        hop.options = TEXT("tls=none");
    if (nexthop.at[0] != '[' && text_digits(nexthop) == 0 &&
        !text_equal(hop.host, TEXT("localhost")))
        hop.options = hop.options.length > 0 ? TEXT("mx=yes&tls=none") : TEXT("mx=yes");
    return import_target(im, &hop);
}

static void
postfix_relayhost(struct import *im, struct import_line *line)
{
    struct text rest = text_from(line->value), one;
    import_say(line, IMPORT_NEEDLESS, "it is empty: mail goes to the MX hosts");
    while (text_word(&rest, ", \t", &one)) {
        const char *target = postfix_target(im, one, TEXT(""));
        if (target == NULL)
            import_say(line, IMPORT_LEFT, "it is not a host; write relay = HOST:PORT");
        else
            import_put(im, line, "relay", target);
    }
}

/* TRANSPORT:NEXTHOP. NULL: Petrel has nothing of the kind. */
static const char *
postfix_transport(struct import *im, struct text value, struct text sender)
{
    size_t colon = text_find(value, ':');
    bool is_host = colon == TEXT_NONE || text_starts(value, TEXT("["));
    struct text name = is_host ? TEXT("") : text_before(value, colon);
    struct text to = is_host ? value : text_trim(text_after(value, colon + 1));
    bool is_unix = text_starts(to, TEXT("unix:")),
         is_inet = text_starts(to, TEXT("inet:"));
    struct text path = text_after(to, is_unix || is_inet ? 5 : 0);
    bool is_beside = is_unix && !text_starts(path, TEXT("/"));
    if (text_equal(name, TEXT("lmtp")))
        return import_format(im, "lmtp://%s%.*s",
                             is_beside ? "unix:/var/spool/postfix/"
                             : is_unix ? "unix:"
                                       : "",
                             TEXT_ARGS(path));
    if (text_equal(name, TEXT("error")) || text_equal(name, TEXT("retry"))) {
        /* Mail for retry: waits, whatever class its code has. */
        bool waits = text_equal(name, TEXT("retry")), coded = text_digits(to) > 0;
        return import_format(im, "error:%s%.*s",
                             coded   ? waits ? "4" : ""
                             : waits ? "4.3.0 "
                                     : "5.1.1 ",
                             TEXT_ARGS(to.length == 0   ? TEXT("undeliverable")
                                       : coded && waits ? text_after(to, 1)
                                                        : to));
    }
    if (text_equal(name, TEXT("discard")) || text_equal(name, TEXT("hold")))
        return import_keep(im, name);
    bool is_smtp = text_equal(name, TEXT("smtp")) || text_equal(name, TEXT("relay"));
    if (!is_host && name.length > 0 && !is_smtp)
        return text_digits(to) > 0 ? postfix_target(im, value, sender)
                                   : NULL; /* HOST:25 */
    return to.length > 0 ? postfix_target(im, to, sender) : "mx";
}

static void
postfix_local(struct import *im, struct import_line *line)
{
    const char *target = postfix_transport(im, text_from(line->value), TEXT(""));
    if (line->value[0] == '\0' || strcmp(line->value, "virtual") == 0)
        import_say(line, IMPORT_NEEDLESS, "it is the default of Postfix");
    else if (target != NULL && strncmp(target, "lmtp:", 5) == 0)
        import_put(im, line, "local", target);
    else
        import_say(line, IMPORT_LEFT,
                   "Petrel starts no programs; write local = TARGET");
}

/* --- Maps ------------------------------------------------------------------------- */

/* @domain is the domain; a bare name is of this host. */
static const char *
postfix_pattern(struct import *im, const char *key)
{
    bool is_bare = strchr(key, '@') == NULL && strcmp(key, "<>") != 0;
    return key[0] == '@' ? key + 1
           : is_bare ? import_format(im, "%s@%.*s", key, TEXT_ARGS(postfix_host(im)))
                     : key;
}

/* An entry of the setting `with`: its form says how key and value make it. */
static void
postfix_entry(struct import *im, struct import_line *entry)
{
    struct text rest = text_from(entry->value), word;
    const char *key = postfix_pattern(im, entry->name), *value = entry->value;
    const char *target = NULL;
    switch (entry->row->why[0]) {
    case 'T': /* transport_maps: patterns as they are */
        key = entry->name;
        target = value[0] != '\0' ? postfix_transport(im, rest, TEXT("")) : NULL;
        break;
    case 'S': /* next hops by sender */
        target = postfix_transport(im, rest, text_from(entry->name));
        break;
    case 'R': /* addresses */
        target = value[0] == '@' ? value : postfix_pattern(im, value);
        break;
    case 'C': /* copies: the rest of the form begins the pattern */
        key = import_format(im, "%s%s", entry->row->why + 1, key);
        target = postfix_pattern(im, value);
        break;
    case 'L': /* logins */
        while (text_word(&rest, ", \t", &word))
            import_put(im, entry, entry->row->with,
                       import_format(im, "%.*s %s", TEXT_ARGS(word), key));
        return;
    default:
        break;
    }
    if (target != NULL)
        import_put(im, entry, entry->row->with,
                   import_format(im, "%s %s", key, target));
    else
        import_say(entry, IMPORT_LEFT,
                   import_format(im,
                                 "Petrel has no such target; write %s = PATTERN TARGET",
                                 entry->row->with));
}

static void
postfix_alias(struct import *im, struct import_line *entry)
{
    struct text rest = text_from(entry->value), word;
    bool fits = strchr(entry->name, ':') == NULL &&
                buffer_format(&im->aliases, "%s:", entry->name);
    for (bool first = true; fits && text_word(&rest, ", \t", &word); first = false)
        fits =
            buffer_format(&im->aliases, "%s %.*s", first ? "" : ",", TEXT_ARGS(word));
    if (fits && buffer_add_byte(&im->aliases, '\n'))
        import_put(im, entry, "aliases",
                   import_format(im, "%s/aliases.imported", im->directory));
    else
        import_say(entry, IMPORT_LEFT,
                   "it is not an alias, or there is more than 1 MiB of them");
}

/* Text maps have their source beside what postmap(1) made of it. */
static void
postfix_map(struct import *im, struct import_line *line)
{
    struct text rest = text_from(line->value), word;
    import_act *each =
        strcmp(line->row->with, "aliases") == 0 ? postfix_alias : postfix_entry;
    line->setting = line->row->with;
    import_say(line, IMPORT_TAKEN, NULL);
    while (text_word(&rest, ", \t", &word)) {
        struct text types = TEXT("hash btree lmdb cdb dbm sdbm texthash"), one;
        struct text type = text_before(word, text_find(word, ':'));
        struct text path = text_after(word, type.length + 1);
        bool is_text = false;
        while (text_word(&types, " ", &one))
            is_text = is_text || text_equal(one, type);
        if (!is_text || path.length == 0)
            import_say(
                line, IMPORT_LEFT,
                import_format(im, "only maps of text are read; write its lines as %s",
                              line->row->with));
        else if (line->row->why != NULL && line->row->why[0] == 'A')
            import_alias_file(im, line, path);
        else
            (void)import_entries(im, line, path, " \t", each);
    }
}

/* --- Other values ------------------------------------------------------------------- */

static void
postfix_interfaces(struct import *im, struct import_line *line)
{
    struct text rest = text_from(line->value), word;
    while (text_word(&rest, ", \t", &word))
        import_listen(im, line, word, TEXT("25"), "");
}

/* They may send anywhere only if a rule says so. */
static void
postfix_networks(struct import *im, struct import_line *line)
{
    struct text rest = import_value(im, "smtpd_relay_restrictions"), word;
    bool permits = rest.length == 0;
    while (text_word(&rest, ", \t", &word))
        permits = permits || text_equal_nocase(word, TEXT("permit_mynetworks"));
    if (permits)
        import_networks(im, line);
    else
        import_say(
            line, IMPORT_LEFT,
            "smtpd_relay_restrictions has no permit_mynetworks; write relay_from "
            "= NETWORKS if they may relay");
}

/* It counts for next hops of the settings alone. */
static void
postfix_level(struct import *im, struct import_line *line)
{
    struct text levels = TEXT("encrypt verify secure dane-only fingerprint yes"), one;
    bool demands = false, is_odd = false;
    while (text_word(&levels, " ", &one))
        if (text_equal_nocase(one, text_from(line->value))) {
            demands = true;
            is_odd = text_equal(one, TEXT("dane-only")) ||
                     text_equal(one, TEXT("fingerprint"));
        }
    if (demands && (is_odd || import_value(im, "relayhost").length == 0))
        import_say(
            line, IMPORT_LEFT,
            "TLS is not demanded of all hosts; write routes = * mx?tls=encrypt, or "
            "relay = TARGET?tls=verify");
    else
        import_share(im, line);
}

/* Rules as words; the arguments of some have a dot or a colon. */
static void
postfix_rules(struct import *im, struct import_line *line)
{
    /* clang-format off */
    static const struct import_row words[] = {
        {"permit permit_mynetworks permit_sasl_authenticated permit_auth_destination "
         "reject_unauth_* defer_unauth_destination reject_unlisted_* "
         "reject_non_fqdn_recipient reject_unknown_recipient_domain "
         "reject_sender_login_mismatch reject_authenticated_sender_login_mismatch",
         import_needless, NULL, NULL},
        {"reject_non_fqdn_sender", import_as, "check_sender", NULL},
        {"reject_invalid_helo_hostname reject_non_fqdn_helo_hostname", import_as,
         "check_helo", NULL},
        {"reject_rbl_client reject_rhsbl_*", import_leave,
         "Petrel asks no blocklists about clients", NULL},
        {"check_policy_service", import_leave, "Petrel asks no policy services", NULL},
        {"permit_tls_*", import_leave, "write relay_client_certificates = FILE", NULL},
        {NULL, NULL, NULL, NULL},
    };
    /* clang-format on */
    struct text rest = text_from(line->value), word;
    bool open = strcmp(line->name, "smtpd_relay_restrictions") == 0 ||
                strcmp(line->name, "smtpd_recipient_restrictions") == 0;
    import_say(line, IMPORT_NEEDLESS, "Petrel does so anyway");
    while (text_word(&rest, ", \t", &word)) {
        const struct import_row *rule = import_row_of(words, word);
        if (text_equal(word, TEXT("permit")) && open)
            import_say(
                line, IMPORT_LEFT,
                "permit: would make an open relay; relay_from says who may send");
        else if (text_starts(word, TEXT("reject")) || text_starts(word, TEXT("defer")))
            open = false;
        if (rule != NULL && rule->act == import_as)
            import_put(im, line, rule->with, "yes");
        else if (rule != NULL ? rule->act == import_leave
                              : memchr(word.at, '.', word.length) == NULL &&
                                    memchr(word.at, ':', word.length) == NULL)
            import_say(
                line, IMPORT_LEFT,
                import_format(im, "%.*s: %s", TEXT_ARGS(text_before(word, 80)),
                              rule != NULL ? rule->with : "Petrel has no such rule"));
    }
}

static void
postfix_origin(struct import *im, struct import_line *line)
{
    struct text content = text_from(line->value);
    const char *name, *why;
    if (line->value[0] == '/' &&
        !import_read(im, line->file, line->value, &content, &name, &why)) {
        import_say(line, IMPORT_LEFT, why);
        return;
    }
    line->value =
        import_keep(im, text_trim(text_before(content, text_find(content, '\n'))));
    if (text_equal_nocase(text_from(line->value), postfix_host(im)))
        import_say(line, IMPORT_NEEDLESS,
                   "addresses without a domain get that of hostname");
    else
        import_sender(im, line);
}

static void
postfix_home(struct import *im, struct import_line *line)
{
    size_t length = strlen(line->value);
    if (length == 0 || line->value[length - 1] != '/')
        import_say(line, IMPORT_LEFT,
                   "Petrel writes no mbox files; write local = maildir:PATH/%u");
    else
        import_put(
            im, line, "local",
            import_format(im, "maildir:/home/%%u/%.*s", (int)length - 1, line->value));
}

/* Without a path there is no socket to ask; other types than Dovecot's have none. */
static void
postfix_sasl_auth(struct import *im, struct import_line *line)
{
    bool wants = import_is_yes(import_value(im, "smtpd_sasl_auth_enable"));
    line->setting = "auth";
    if (!wants)
        import_say(line, IMPORT_NEEDLESS, "it is the default: clients do not log in");
    else if (import_find(im, "smtpd_sasl_path") != NULL &&
             text_equal(import_value(im, "smtpd_sasl_type"), TEXT("dovecot")))
        import_say(line, IMPORT_TAKEN, NULL);
    else
        import_say(line, IMPORT_LEFT,
                   "for logins of clients write auth_users = FILE, made by `petrel "
                   "passwd USER`, or auth = dovecot:PATH");
}

static void
postfix_sasl_path(struct import *im, struct import_line *line)
{
    if (!text_equal(import_value(im, "smtpd_sasl_type"), TEXT("dovecot")) ||
        !import_is_yes(import_value(im, "smtpd_sasl_auth_enable")))
        import_say(line, IMPORT_LEFT, "for logins of clients write auth_users = FILE");
    else
        import_put(im, line, "auth",
                   import_format(im, "dovecot:%s%s",
                                 line->value[0] == '/' ? "" : "/var/spool/postfix/",
                                 line->value));
}

/* A setting of the same name here, or a hint in the table of other names. */
static void
postfix_other(struct import *im, struct import_line *line)
{
    const struct setting *same = settings_find(options_rows, text_from(line->name));
    struct text value = text_from(line->value);
    const struct setting_synonym *s = synonyms_rows;
    while (s->name != NULL && strcasecmp(s->name, line->name) != 0)
        s++;
    if (value.length == 0 && (same != NULL || s->name != NULL))
        import_say(line, IMPORT_NEEDLESS, "it is empty");
    else if (same != NULL)
        import_put(im, line, same->key, line->value);
    else if (s->key != NULL && (s->takes == NULL || s->takes(value)))
        import_put(im, line, s->key, line->value);
    else if (s->name != NULL)
        import_say(line, IMPORT_LEFT, s->help);
}

/* relay_domains go where other mail goes, unless a transport says otherwise. */
static void
postfix_end(struct import *im)
{
    struct import_line *relayed = import_find(im, "relay_domains");
    struct import_line *hop = import_find(im, "relayhost");
    struct import_line *mine = import_find(im, "mydestination");
    struct text rest = text_from(relayed != NULL ? relayed->value : ""), word;
    struct text to = text_from(hop != NULL ? hop->value : "");
    const char *target = to.length > 0 ? postfix_target(im, to, TEXT("")) : NULL;
    while (text_word(&rest, ", \t", &word)) {
        if (memchr(word.at, ':', word.length) != NULL || word.at[0] == '/') {
            import_say(relayed, IMPORT_LEFT,
                       "maps are not read here; write routes = DOMAIN "
                       "TARGET, and add DOMAIN to local_domains");
            continue;
        }
        import_put(im, relayed, "local_domains", import_keep(im, word));
        import_put(im, relayed, "routes",
                   import_format(im, "%.*s %s", TEXT_ARGS(word),
                                 target != NULL ? target : "mx"));
    }
    if (mine == NULL && import_has(im, "local_domains"))
        import_put(im, NULL, "local_domains", import_keep(im, postfix_host(im)));
    if (mine != NULL && mine->fate == IMPORT_TAKEN && !import_has(im, "local"))
        mine->why =
            "Petrel writes no mbox files: write local = maildir:/var/mail/%u, or "
            "their mail goes to relay";
    if (import_find(im, "inet_interfaces") == NULL)
        import_listen(im, NULL, TEXT("all"), TEXT("25"), "");
    const char *name, *why;
    struct text content;
    if (!import_read(im, im->lines[0].file, "master.cf", &content, &name, &why) ||
        (memmem(content.at, content.length, "\nsubmission", 11) == NULL &&
         memmem(content.at, content.length, "\nsmtps", 6) == NULL))
        return;
    struct import_line *master = import_add(im, name, 0, TEXT("submission"), TEXT(""));
    if (master != NULL)
        import_say(master, IMPORT_LEFT,
                   "its services are not read; add "
                   "0.0.0.0:587?auth=required to listen");
}

/* clang-format off */
static const struct import_row postfix_rows[] = {
    {"myhostname", import_as, "hostname", NULL},
    {"mydomain", import_needless, "it is in the values that use it", NULL},
    {"myorigin", postfix_origin, NULL, NULL},
    {"mydestination virtual_alias_domains virtual_mailbox_domains", import_words,
        "local_domains", NULL},
    {"mynetworks", postfix_networks, "relay_from", NULL},
    {"mynetworks_style", import_unless, "host", "write relay_from = NETWORKS"},
    {"inet_interfaces", postfix_interfaces, NULL, NULL},
    {"inet_protocols", import_unless, "all", "write smtp_family = ipv4, and no [ADDRESS] in "
        "listen"},
    {"relay_domains", import_share, "routes", NULL}, /* postfix_end() */
    {"relayhost", postfix_relayhost, NULL, NULL},
    {"smtp_sasl_password_maps smtp_sasl_auth_enable smtp_sender_dependent_authentication",
        import_share, "auth_passwords", NULL},
    {"smtp_sasl_*", import_needless, "Petrel takes the best mechanism, and sends no password "
        "without TLS", NULL},
    {"smtp_tls_security_level smtp_enforce_tls", postfix_level, "relay",
        "with a login the certificate is verified"},
    {"smtp_use_tls smtp_tls_wrappermode", import_share, "relay",
        "with a login the certificate is verified"},
    {"sender_dependent_relayhost_maps", postfix_map, "sender_routes", "S"},
    {"transport_maps", postfix_map, "routes", "T"},
    {"virtual_alias_maps", postfix_map, "aliases", NULL},
    {"alias_maps", postfix_map, "aliases", "A"},
    {"smtp_generic_maps sender_canonical_maps canonical_maps", postfix_map, "rewrite", "R"},
    {"recipient_bcc_maps", postfix_map, "copy_to", "Crecipient:"},
    {"sender_bcc_maps", postfix_map, "copy_to", "Csender:"},
    {"smtpd_sender_login_maps", postfix_map, "sender_login", "L"},
    {"smtp_tls_policy_maps", import_leave, "write routes = DOMAIN mx?tls=encrypt or "
        "?tls=verify", NULL},
    {"always_bcc", import_as, "copy_to", NULL},
    {"home_mailbox", postfix_home, NULL, NULL},
    {"mailbox_transport virtual_transport local_transport", postfix_local, NULL, NULL},
    {"smtpd_sasl_path", postfix_sasl_path, NULL, NULL},
    {"smtpd_sasl_auth_enable smtpd_sasl_type", postfix_sasl_auth, NULL, NULL},
    {"smtpd_tls_security_level smtpd_use_tls", import_share, "tls_certificate",
        "STARTTLS is offered, and not demanded"},
    {"smtpd_tls_auth_only", import_needless, "AUTH is offered under TLS alone", NULL},
    {"smtpd_sasl_* broken_sasl_auth_clients", import_needless,
        "Petrel needs nothing of the kind", NULL},
    {"smtp_fallback_relay fallback_relay", import_leave, "write relay = HOST, HOST: the next "
        "one is used when one does not answer", NULL},
    {"sender_canonical_classes canonical_classes", import_leave, "rewrite changes the sender of "
        "the envelope and the fields of the header", NULL},
    {"header_size_limit", import_leave, "Petrel limits the message, not its header", NULL},
    {"maximal_queue_lifetime", import_as, "maximal_queue_lifetime", "+d"},
    {"bounce_queue_lifetime", import_as, "bounce_queue_lifetime", "+d"},
    {"delay_warning_time", import_as, "delay_warning_time", "+h"},
    {"smtp_destination_concurrency_limit", import_as, "default_destination_concurrency_limit",
        NULL},
    {"smtp_destination_rate_delay", import_as, "default_destination_rate_delay", NULL},
    {"smtp_destination_recipient_limit", import_as, "default_destination_recipient_limit", NULL},
    {"smtp_transport_rate_delay", import_as, "default_transport_rate_delay", NULL},
    {"smtpd_client_message_rate_limit", import_as, "client_message_rate", "%/m"},
    {"smtpd_client_recipient_rate_limit", import_as, "client_recipient_rate", "%/m"},
    {"smtpd_client_connection_rate_limit", import_as, "client_session_rate", "%/m"},
    {"smtpd_client_connection_count_limit", import_as, "client_session_limit", NULL},
    {"smtpd_relay_restrictions smtpd_recipient_restrictions smtpd_client_restrictions "
        "smtpd_helo_restrictions smtpd_sender_restrictions smtpd_data_restrictions",
        postfix_rules, NULL, NULL},
    {"mailbox_size_limit", import_unless, "0", "Petrel limits no mailboxes; the file system can"},
    {"recipient_delimiter", import_unless, "+", "the delimiter is +"},
    {"smtpd_milters non_smtpd_milters", import_leave,
        "Petrel asks no milters; for opendkim write dkim_keys = DIRECTORY, for a filter routes "
        "= * smtp://HOST:PORT", NULL},
    {"header_checks body_checks mime_header_checks smtp_header_checks", import_leave,
        "Petrel examines no content; remove_header and add_header are options of routes", NULL},
    {"masquerade_domains", import_leave, "write rewrite = .DOMAIN @DOMAIN", NULL},
    {"local_recipient_maps relay_recipient_maps virtual_mailbox_maps", import_leave,
        "users are those whose Maildir exists, or the next hop's; see local", NULL},
    {"alias_database newaliases_path mailq_path sendmail_path smtpd_forbid_* "
     "postscreen_* smtpd_banner biff readme_directory html_directory manpage_directory "
     "sample_directory setgid_group compatibility_level append_dot_mydomain "
     "append_at_myorigin command_directory daemon_directory data_directory "
     "queue_directory config_directory meta_directory shlib_directory mail_owner debug* "
     "unknown_local_recipient_reject_code smtpd_helo_required disable_vrfy_command "
     "strict_rfc821_envelopes smtputf8_enable smtp_tls_session_* smtpd_tls_session_* "
     "smtp_tls_loglevel smtpd_tls_loglevel smtpd_tls_received_header "
     "smtp_tls_note_starttls_offer smtpd_tls_protocols smtp_tls_protocols "
     "smtpd_tls_mandatory_* smtp_tls_mandatory_* smtpd_tls_ciphers smtp_tls_ciphers "
     "smtpd_tls_dh* tls_* smtp_dns_support_level smtp_host_lookup virtual_uid_maps "
     "virtual_gid_maps virtual_minimum_uid notify_classes local_destination_* milter_* "
     "maillog_* syslog_* default_database_type disable_dns_lookups "
     "always_add_missing_headers smtp_tls_fingerprint_digest",
     import_needless, "Petrel needs nothing of the kind", NULL},
    {"*", postfix_other, NULL, NULL},
    {NULL, NULL, NULL, NULL},
};
/* clang-format on */

const struct import_kind import_postfix = {
    "postfix",   "main.cf", import_read_long, postfix_rows, postfix_begin,
    postfix_end, false};
