/* Programs that give mail to a smarthost: msmtp, ssmtp, nullmailer, dma. */
#include "admin/import/import.h"

#include "base/disk/disk.h"

#include <string.h>

static enum import_tls
client_tls(bool first, bool start)
{
    return first ? IMPORT_TLS_FIRST : start ? IMPORT_TLS_START : IMPORT_TLS_MAY;
}

/* --- msmtp ------------------------------------------------------------------------ */

enum msmtp_field {
    MSMTP_HOST,
    MSMTP_PORT,
    MSMTP_FROM,
    MSMTP_USER,
    MSMTP_PASSWORD,
    MSMTP_EVAL,
    MSMTP_AUTH,
    MSMTP_TLS,
    MSMTP_STARTTLS,
    MSMTP_CHECK,
    MSMTP_CERT,
    MSMTP_KEY,
    MSMTP_FIELDS
};
enum { MSMTP_ACCOUNTS_MAX = 50 };

static const char *const msmtp_names[MSMTP_FIELDS] = {
    "host", "port", "from",         "user",          "password",      "passwordeval",
    "auth", "tls",  "tls_starttls", "tls_certcheck", "tls_cert_file", "tls_key_file"};

struct msmtp_account {
    struct text name;
    struct import_line *line, *fields[MSMTP_FIELDS];
};

static struct text
msmtp_value(const struct msmtp_account *a, enum msmtp_field field)
{
    const struct import_line *line = a->fields[field];
    return import_unquote(text_from(line != NULL ? line->value : ""));
}

static bool
msmtp_is_on(const struct msmtp_account *a, enum msmtp_field field, bool preset)
{
    const struct import_line *line = a->fields[field];
    return line == NULL
               ? preset
               : line->value[0] == '\0' || import_is_yes(text_from(line->value));
}

/* "cat FILE" is read; Petrel starts no other program either. */
static struct text
msmtp_password(struct import *im, const struct msmtp_account *a)
{
    struct import_line *eval = a->fields[MSMTP_EVAL];
    struct text command = msmtp_value(a, MSMTP_EVAL), content = TEXT("");
    const char *name, *why = NULL;
    if (eval == NULL || a->fields[MSMTP_PASSWORD] != NULL)
        return msmtp_value(a, MSMTP_PASSWORD);
    import_say(eval, IMPORT_LEFT,
               "Petrel starts no programs; write the password into the "
               "file that auth_passwords names");
    if (!text_starts(command, TEXT("cat ")))
        return content;
    struct text path = import_unquote(text_after(command, 4));
    if (import_read(im, eval->file, import_keep(im, path), &content, &name, &why))
        eval->fate = IMPORT_TAKEN, eval->setting = "auth_passwords", eval->why = NULL;
    else
        import_say(eval, IMPORT_LEFT, why);
    return text_before(content, text_find(content, '\n'));
}

static void
msmtp_take(struct import *im, const struct msmtp_account *a, bool is_default)
{
    struct import_hop hop = {.host = msmtp_value(a, MSMTP_HOST),
                             .port = msmtp_value(a, MSMTP_PORT)};
    struct text auth = msmtp_value(a, MSMTP_AUTH), from = msmtp_value(a, MSMTP_FROM);
    struct text cert = msmtp_value(a, MSMTP_CERT), key = msmtp_value(a, MSMTP_KEY);
    bool tls = msmtp_is_on(a, MSMTP_TLS, false),
         start = msmtp_is_on(a, MSMTP_STARTTLS, true);
    if (hop.host.length == 0 || (!is_default && from.length == 0)) {
        import_say(a->line, IMPORT_LEFT,
                   hop.host.length == 0 ? "it has no host"
                                        : "it has no from, so no sender is its");
        return;
    }
    if (!text_equal_nocase(auth, TEXT("off")) &&
        auth.length + msmtp_value(a, MSMTP_USER).length > 0)
        hop.user = msmtp_value(a, MSMTP_USER);
    if (hop.user.length > 0)
        hop.password = msmtp_password(im, a);
    hop.tls = client_tls(tls && !start, tls);
    if (!msmtp_is_on(a, MSMTP_CHECK, true))
        hop.options = TEXT("tls=encrypt");
    if (cert.length > 0)
        hop.options = text_from(
            import_format(im, "%.*s%scert=%.*s&key=%.*s", TEXT_ARGS(hop.options),
                          hop.options.length > 0 ? "&" : "", TEXT_ARGS(cert),
                          TEXT_ARGS(key.length > 0 ? key : cert)));
    const char *target = import_target(im, &hop);
    if (is_default) {
        import_put(im, a->line, "relay", target);
        if (from.length > 0)
            import_sender(im, a->fields[MSMTP_FROM]);
        return;
    }
    import_put(im, a->line, "sender_routes",
               import_format(im, "%.*s %s", TEXT_ARGS(from), target));
    a->fields[MSMTP_FROM]->setting = "sender_routes";
}

/* "NAME : OTHER" has the fields of OTHER; all have those of `defaults`. */
static struct msmtp_account *
msmtp_open(struct msmtp_account *all, size_t *count, struct import_line *line,
           struct text rest)
{
    size_t colon = text_find(rest, ':');
    struct text name = text_trim(text_before(rest, colon)), other;
    struct msmtp_account *a = &all[0];
    if (*count == MSMTP_ACCOUNTS_MAX)
        return NULL;
    a = &all[(*count)++];
    *a = all[0];
    other = colon == TEXT_NONE ? TEXT("") : text_trim(text_after(rest, colon + 1));
    other = text_before(other, text_find(other, ','));
    for (size_t i = 1; i + 1 < *count && other.length > 0; i++)
        if (text_equal(all[i].name, other))
            *a = all[i];
    a->line = line;
    a->name = name;
    return a;
}

static void
msmtp_end(struct import *im)
{
    struct msmtp_account all[MSMTP_ACCOUNTS_MAX] = {{.name = TEXT("defaults")}};
    struct msmtp_account *now = NULL;
    size_t count = 1, chosen = 0;
    for (size_t i = 0; i < im->count && im->lines[i].of == NULL; i++) {
        struct import_line *line = &im->lines[i];
        if (strcmp(line->name, "defaults") == 0)
            now = &all[0];
        else if (strcmp(line->name, "account") == 0) {
            now = msmtp_open(all, &count, line, text_from(line->value));
            if (now == NULL)
                import_say(line, IMPORT_LEFT, "there are more than 48 accounts");
        } else if (now == NULL && count == 1)
            now = msmtp_open(all, &count, line, TEXT("default")); /* an old form */
        for (int f = 0; f < MSMTP_FIELDS && now != NULL; f++)
            if (strcmp(line->name, msmtp_names[f]) == 0)
                now->fields[f] = line;
    }
    for (size_t i = 1; i < count; i++)
        if (chosen == 0 || text_equal(all[i].name, TEXT("default")))
            chosen = i;
    for (size_t i = 1; i < count; i++) {
        bool is_twin = i != chosen &&
                       all[i].fields[MSMTP_HOST] == all[chosen].fields[MSMTP_HOST] &&
                       all[i].fields[MSMTP_FROM] == all[chosen].fields[MSMTP_FROM];
        if (is_twin) /* account default : NAME */
            all[i].line->setting = "relay", import_say(all[i].line, IMPORT_TAKEN, NULL);
        else
            msmtp_take(im, &all[i], i == chosen);
    }
}

static void
msmtp_domain(struct import *im, struct import_line *line)
{
    if (import_find(im, "from") != NULL)
        import_say(line, IMPORT_NEEDLESS, "from is there");
    else
        import_sender(im, line);
}

/* clang-format off */
static const struct import_row msmtp_rows[] = {
    {"defaults", import_needless, "a section; its lines count for the accounts", NULL},
    {"account host port tls tls_starttls tls_certcheck tls_cert_file tls_key_file",
        import_share, "relay", NULL},
    {"user password auth passwordeval", import_share, "auth_passwords", NULL},
    {"from", import_share, "rewrite", NULL},
    {"aliases", import_aliases, NULL, NULL},
    {"maildomain", msmtp_domain, NULL, NULL},
    {"domain", import_as, "hostname", NULL},
    {"tls_trust_file", import_as, "tls_ca", NULL},
    {"source_ip", import_as, "smtp_bind", NULL},
    {"syslog", import_unless, "off", "write log_to = syslog"},
    {"protocol", import_unless, "smtp", "write relay = lmtp://HOST:PORT"},
    {"tls_fingerprint", import_leave, "Petrel compares no fingerprints; name the host's own "
        "certificate in tls_ca", NULL},
    {"proxy_host proxy_port", import_leave, "Petrel uses no SOCKS proxy", NULL},
    {"socket", import_leave, "write relay = lmtp://unix:PATH for LMTP; SMTP has no Unix "
        "socket", NULL},
    {"logfile logfile_time_format", import_needless,
        "the log is standard error, or log_to = syslog", NULL},
    {"auto_from allow_from_override set_from_header set_date_header set_msgid_header "
        "add_missing_from_header add_missing_date_header "
     "remove_bcc_headers undisclosed_recipients dsn_notify dsn_return timeout "
     "tls_min_dh_prime_bits tls_priorities tls_crl_file tls_host_override keepbcc from_full_name",
        import_needless, "sendmail(1) and rewrite do what is needed", NULL},
    {"eval", import_leave, "Petrel starts no programs", NULL},
    {NULL, NULL, NULL, NULL},
};
/* clang-format on */
const struct import_kind import_msmtp = {
    "msmtp", "msmtprc .msmtprc", import_read_words, msmtp_rows, NULL, msmtp_end, true};

/* --- ssmtp ------------------------------------------------------------------------ */

/* revaliases: USER:ADDRESS[:MAILHUB[:PORT]] */
static void
ssmtp_alias(struct import *im, struct import_line *entry)
{
    struct text host = import_value(im, "hostname"), to = text_from(entry->value);
    import_put(im, entry, "rewrite",
               import_format(im, "%s%s%.*s %.*s",
                             host.length > 0 ? entry->name : "local",
                             host.length > 0 ? "@" : "", TEXT_ARGS(host),
                             TEXT_ARGS(text_before(to, text_find(to, ':')))));
}

static void
ssmtp_end(struct import *im)
{
    struct import_line *hub = import_find(im, "mailhub"), beside = {0};
    struct import_hop hop = {.user = import_value(im, "AuthUser"),
                             .password = import_value(im, "AuthPass")};
    bool start = import_is_yes(import_value(im, "UseSTARTTLS"));
    hop.tls = client_tls(import_is_yes(import_value(im, "UseTLS")) && !start, start);
    if (hub != NULL && import_split_host(import_value(im, "mailhub"), &hop))
        import_put(im, hub, "relay", import_target(im, &hop));
    else if (hub != NULL)
        import_say(hub, IMPORT_LEFT, "it is not a host; write relay = HOST:PORT");
    beside = (struct import_line){.file = im->lines[0].file, .name = "revaliases"};
    (void)import_entries(im, &beside, TEXT("revaliases"), ":", ssmtp_alias);
    if (import_value(im, "rewriteDomain").length > 0)
        import_sender(im, import_find(im, "rewriteDomain"));
}

static void
ssmtp_root(struct import *im, struct import_line *line)
{
    if (strchr(line->value, '@') != NULL)
        import_as(im, line);
    else
        import_say(line, IMPORT_LEFT,
                   "there are no mailboxes here; write root = NAME@DOMAIN");
}

/* clang-format off */
static const struct import_row ssmtp_rows[] = {
    {"root", ssmtp_root, "root", NULL},
    {"mailhub UseTLS UseSTARTTLS", import_share, "relay", NULL},
    {"AuthUser AuthPass AuthMethod", import_share, "auth_passwords", NULL},
    {"rewriteDomain", import_share, "rewrite", NULL},
    {"hostname", import_as, "hostname", NULL},
    {"TLS_CA_File TLS_CA_Dir TLS_CAFile", import_as, "tls_ca", NULL},
    {"UseTLSCert TLSCert TLSKey", import_leave, "write relay = TARGET?cert=FILE&key=FILE", NULL},
    {"FromLineOverride", import_unless, "yes", "write rewrite = local NAME@DOMAIN: From is kept "
        "otherwise"},
    {"UseOldAUTH Debug MinUserId", import_needless, "Petrel has nothing of the kind", NULL},
    {NULL, NULL, NULL, NULL},
};
/* clang-format on */
const struct import_kind import_ssmtp = {
    "ssmtp", "ssmtp.conf", import_read_either, ssmtp_rows, NULL, ssmtp_end, true};

/* --- nullmailer ------------------------------------------------------------------- */

static bool
nullmailer_add_file(void *context, const char *file)
{
    struct import *im = context;
    const char *name, *why;
    struct text content, line;
    if (file[0] == '.')
        return true;
    if (!import_read(im, im->beside, file, &content, &name, &why)) {
        struct import_line *l = import_add(im, name, 0, text_from(file), TEXT(""));
        if (l != NULL)
            import_say(l, IMPORT_LEFT, why);
        return true;
    }
    for (unsigned number = 1; text_cut(&content, '\n', &line); number++)
        if (text_trim(line).length > 0 && line.at[0] != '#')
            (void)import_add(im, name, number, text_from(file), line);
    return true;
}

/* One file of the directory, or the directory. */
static void
nullmailer_read(struct import *im, const char *file, struct text content)
{
    struct disk *disk;
    size_t slash = text_find_last(text_from(file), '/');
    const char *base = file + (slash == TEXT_NONE ? 0 : slash + 1);
    (void)content;
    if (disk_open(&disk, file, false) == 0) {
        im->beside = import_format(im, "%s/", file);
        (void)disk_list(disk, ".", nullmailer_add_file, im);
        disk_close(&disk);
    } else if (file[0] != '\0') {
        im->beside = import_keep(im, text_from(file));
        (void)nullmailer_add_file(im, base);
    }
}

/* HOST [PROTOCOL] [--OPTION[=VALUE]]... */
static void
nullmailer_remote(struct import *im, struct import_line *line)
{
    struct text rest = text_from(line->value), word, protocol = TEXT("smtp"),
                ca = TEXT("");
    struct import_hop hop = {0};
    bool start = false, first = false, open = false;
    const char *odd = NULL;
    const struct {
        const char *name;
        struct text *value;
        bool *flag;
    } options[] = {
        {"--port",       &hop.port,     NULL  },
        {"--user",       &hop.user,     NULL  },
        {"--pass",       &hop.password, NULL  },
        {"--starttls",   NULL,          &start},
        {"--ssl",        NULL,          &first},
        {"--tls",        NULL,          &first},
        {"--insecure",   NULL,          &open },
        {"--auth-login", NULL,          NULL  },
        {"--x509cafile", &ca,           NULL  }
    };
    (void)import_word(&rest, &hop.host);
    while (import_word(&rest, &word)) {
        struct text name = text_before(word, text_find(word, '='));
        size_t i = 0, count = sizeof(options) / sizeof(*options);
        while (i < count && !text_equal(name, text_from(options[i].name)))
            i++;
        if (word.at[0] != '-')
            protocol = word;
        else if (i == count)
            odd = import_format(im, "without %.*s", TEXT_ARGS(text_before(name, 40)));
        else if (options[i].value != NULL)
            *options[i].value = import_unquote(text_after(word, name.length + 1));
        else if (options[i].flag != NULL)
            *options[i].flag = true;
    }
    if (ca.length > 0)
        import_put(im, NULL, "tls_ca", import_keep(im, ca));
    hop.tls = client_tls(first || text_equal(protocol, TEXT("smtps")), start);
    if (open && (start || first))
        hop.options = TEXT("tls=encrypt");
    if (text_starts(protocol, TEXT("smtp")))
        import_put(im, line, "relay", import_target(im, &hop));
    else
        odd = NULL,
        import_say(line, IMPORT_LEFT,
                   import_format(im,
                                 "%.*s is no protocol that Petrel has; write "
                                 "relay = HOST:PORT",
                                 TEXT_ARGS(text_before(protocol, 40))));
    line->why = odd != NULL ? odd : line->why;
}

/* clang-format off */
static const struct import_row nullmailer_rows[] = {
    {"remotes", nullmailer_remote, NULL, NULL},
    {"adminaddr", import_as, "root", NULL},
    {"me helohost", import_name, NULL, NULL},
    {"allmailfrom", import_sender, NULL, NULL},
    {"defaultdomain", import_sender, NULL, NULL},
    {"pausetime", import_as, "minimal_backoff_time", "+s"},
    {"maxpause", import_as, "maximal_backoff_time", "+s"},
    {"queuelifetime", import_as, "maximal_queue_lifetime", "+s"},
    {"bounceto doublebounceto", import_as, "root", NULL},
    {"defaulthost idhost sendtimeout", import_needless,
        "it is hostname, and RFC 5321 has the times", NULL},
    {NULL, NULL, NULL, NULL},
};
/* clang-format on */
const struct import_kind import_nullmailer = {
    "nullmailer", "nullmailer remotes", nullmailer_read, nullmailer_rows, NULL, NULL,
    true};

/* --- dma -------------------------------------------------------------------------- */

/* USER|HOST:PASSWORD becomes HOST USER:PASSWORD. */
static void
dma_login(struct import *im, struct import_line *entry)
{
    struct text rest = text_from(entry->value);
    struct text host = text_before(rest, text_find(rest, ':'));
    entry->value = import_format(im, "%s:%.*s", entry->name,
                                 TEXT_ARGS(text_after(rest, host.length + 1)));
    entry->name = import_keep(im, host);
    import_take_login(im, entry);
}

static void
dma_end(struct import *im)
{
    struct import_line *host = import_find(im, "SMARTHOST"),
                       *auth = import_find(im, "AUTHPATH");
    struct import_hop hop = {.host = import_value(im, "SMARTHOST"),
                             .port = import_value(im, "PORT")};
    bool start = import_find(im, "STARTTLS") != NULL;
    bool tls = import_find(im, "SECURETRANSFER") != NULL;
    if (host == NULL || hop.host.length == 0)
        return;
    if (auth != NULL &&
        import_entries(im, auth, text_from(auth->value), "|", dma_login))
        (void)import_find_login(im, hop.host, &hop);
    if (import_find(im, "OPPORTUNISTIC_TLS") == NULL)
        hop.tls = client_tls(tls && !start, tls);
    import_put(im, host, "relay", import_target(im, &hop));
}

/* clang-format off */
static const struct import_row dma_rows[] = {
    {"SMARTHOST PORT SECURETRANSFER STARTTLS OPPORTUNISTIC_TLS", import_share, "relay", NULL},
    {"AUTHPATH", import_share, "auth_passwords", NULL},
    {"MAILNAME MAILNAMEFILE", import_name, NULL, NULL},
    {"MASQUERADE", import_sender, NULL, NULL},
    {"ALIASES", import_aliases, NULL, NULL},
    {"NULLCLIENT", import_needless, "without `local` mail for local users goes to the "
        "smarthost", NULL},
    {"CERTFILE", import_leave, "write relay = TARGET?cert=FILE", NULL},
    {"FINGERPRINT", import_leave, "Petrel compares no fingerprints; name the host's own "
        "certificate in tls_ca", NULL},
    {"SPOOLDIR VIRTPATH DEFER FULLBOUNCE VERIFY DAEMON MAILNAME_LOCAL DBOUNCEPROG",
        import_needless, "Petrel has nothing of the kind", NULL},
    {NULL, NULL, NULL, NULL},
};
/* clang-format on */
const struct import_kind import_dma = {
    "dma", "dma.conf", import_read_words, dma_rows, NULL, dma_end, false};
