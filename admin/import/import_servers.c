/* smtpd.conf of OpenSMTPD, and Exim as Debian sets it up. */
#include "admin/import/import.h"

#include "base/net_address.h"

#include <ctype.h>
#include <string.h>

/* --- OpenSMTPD: lines ------------------------------------------------------------- */

/* A backslash, and an open brace, continue a line. "NAME = VALUE" is a macro. */
static void
opensmtpd_read(struct import *im, const char *file, struct text content)
{
    struct text piece;
    struct buffer line;
    unsigned number = 0, first = 0;
    int depth = 0;
    buffer_init(&line, IMPORT_VALUE_MAX);
    while (text_cut(&content, '\n', &piece)) {
        bool quoted = false, goes_on = false;
        size_t end = 0;
        piece = text_trim(piece);
        if (line.length == 0)
            first = number + 1;
        number++;
        for (; end < piece.length && (quoted || piece.at[end] != '#'); end++) {
            quoted ^= piece.at[end] == '"';
            depth += !quoted && piece.at[end] == '{'   ? 1
                     : !quoted && piece.at[end] == '}' ? -1
                                                       : 0;
        }
        piece = text_trim(text_before(piece, end));
        goes_on = text_ends_nocase(piece, TEXT("\\"));
        piece = text_before(piece, piece.length - goes_on);
        if (!buffer_add(&line, piece) || !buffer_add_byte(&line, ' ') ||
            ((goes_on || depth > 0) && content.length > 0))
            continue;
        depth = 0;
        struct text all = text_trim(buffer_text(&line));
        size_t name = 0;
        while (name < all.length && !text_is_blank(all.at[name]) && all.at[name] != '=')
            name++;
        if (all.length > 0)
            (void)import_add(im, file, first, text_before(all, name),
                             text_after(all, name));
        buffer_clear(&line);
    }
    buffer_forget(&line);
}

/* Macros, once: their values have none here. */
static void
opensmtpd_begin(struct import *im)
{
    for (size_t i = 0; i < im->count; i++) {
        struct text rest = text_from(im->lines[i].value);
        struct buffer out;
        buffer_init(&out, IMPORT_VALUE_MAX);
        if (rest.length > 0 && rest.at[0] == '=') {
            im->lines[i].value = import_keep(im, import_unquote(text_after(rest, 1)));
            import_say(&im->lines[i], IMPORT_NEEDLESS,
                       "it is in the lines that use it");
            rest = TEXT("");
        }
        while (rest.length > 0) {
            size_t dollar = text_find(rest, '$'), end = 0;
            (void)!buffer_add(&out, text_before(rest, dollar));
            rest = dollar == TEXT_NONE ? TEXT("") : text_after(rest, dollar + 1);
            while (end < rest.length &&
                   (isalnum((unsigned char)rest.at[end]) || rest.at[end] == '_'))
                end++;
            if (end > 0)
                (void)!buffer_add(
                    &out, import_value(im, import_keep(im, text_before(rest, end))));
            rest = text_after(rest, end);
        }
        if (im->lines[i].fate == IMPORT_UNKNOWN)
            im->lines[i].value = import_keep(im, buffer_text(&out));
        buffer_forget(&out);
    }
}

/* The rest of the line NAME FIRST..., as in table FIRST. "": none. */
static struct text
opensmtpd_line(const struct import *im, const char *name, struct text wanted,
               struct import_line **line)
{
    struct text word;
    for (size_t i = 0; i < im->count; i++) {
        struct text rest = text_from(im->lines[i].value);
        if (im->lines[i].of != NULL || strcmp(im->lines[i].name, name) != 0 ||
            !import_word(&rest, &word) || !text_equal(word, wanted))
            continue;
        *line = &im->lines[i];
        return rest;
    }
    *line = NULL;
    return TEXT("");
}

/* <name> is the table; another word is itself. The entries as lines; NULL: unreadable. */
static struct text
opensmtpd_table(struct import *im, struct text word)
{
    struct import_line *line;
    const char *name, *why;
    struct text content, rest;
    if (word.length < 2 || word.at[0] != '<')
        return word;
    rest = text_trim(opensmtpd_line(im, "table", text_within(word, '<', '>'), &line));
    if (line == NULL)
        return TEXT("");
    import_say(line, IMPORT_NEEDLESS, "it is in the lines that use it");
    if (text_starts(rest, TEXT("{")))
        return text_of(rest.at + 1,
                       rest.length - (rest.at[rest.length - 1] == '}') - 1);
    if (text_starts(rest, TEXT("file:")))
        rest = text_after(rest, 5);
    if (rest.length > 0 && rest.at[0] == '/' &&
        import_read(im, line->file, import_keep(im, rest), &content, &name, &why))
        return content;
    import_say(line, IMPORT_LEFT,
               "Petrel reads files alone; write its lines into the settings");
    return TEXT("");
}

/* --- OpenSMTPD: actions ----------------------------------------------------------- */

/* "label user:password" in a file, or with = and commas between braces. */
static void
opensmtpd_login(struct import *im, struct text table, struct text label,
                struct import_hop *hop)
{
    struct text rest = opensmtpd_table(im, table), line, word;
    bool inline_ = memchr(rest.at, '\n', rest.length) == NULL;
    hop->user = label;
    while (text_cut(&rest, '\n', &line))
        while (!text_starts(line, TEXT("#")) && import_word(&line, &word)) {
            if (!text_equal(word, label) || !import_word(&line, &word) ||
                (text_equal(word, TEXT("=")) && !import_word(&line, &word)))
                continue;
            word = text_before(
                word, word.length - (inline_ && text_ends_nocase(word, TEXT(","))));
            word = import_unquote(word);
            hop->user = text_before(word, text_find(word, ':'));
            hop->password = text_after(word, hop->user.length + 1);
            return;
        }
}

static const char *
opensmtpd_relay(struct import *im, struct import_line *line, struct text rest)
{
    static const struct {
        const char *scheme;
        enum import_tls tls;
    } schemes[] = {
        {"smtp",       IMPORT_TLS_MAY  },
        {"smtp+tls",   IMPORT_TLS_START},
        {"tls",        IMPORT_TLS_START},
        {"smtps",      IMPORT_TLS_FIRST},
        {"smtp+notls", IMPORT_TLS_MAY  }
    };
    struct text word, url = TEXT(""), auth = TEXT(""), label = TEXT("");
    struct import_hop hop = {0};
    bool open = false;
    while (import_word(&rest, &word)) {
        if (text_equal(word, TEXT("host")))
            (void)import_word(&rest, &url);
        else if (text_equal(word, TEXT("auth")))
            (void)import_word(&rest, &auth);
        else if (text_equal(word, TEXT("mail-from")) && import_word(&rest, &word))
            import_put(im, NULL, "rewrite",
                       import_format(im, "* %.*s", TEXT_ARGS(word)));
        else if (text_equal(word, TEXT("helo")) && import_word(&rest, &word))
            hop.options = text_from(import_format(im, "helo=%.*s", TEXT_ARGS(word)));
        else if (text_equal(word, TEXT("no-verify")))
            open = true;
        else if (!text_equal(word, TEXT("tls")))
            line->why =
                import_format(im, "without %.*s", TEXT_ARGS(text_before(word, 40)));
    }
    if (url.length == 0)
        return "mx";
    size_t end = text_find(url, ':');
    struct text scheme = text_before(url, end);
    bool has_scheme =
        end != TEXT_NONE && text_starts(text_after(url, end), TEXT("://"));
    if (has_scheme)
        url = text_after(url, end + 3);
    if (has_scheme && text_equal(scheme, TEXT("lmtp")))
        return import_format(im, "lmtp://%.*s", TEXT_ARGS(url));
    for (size_t i = 0; has_scheme && i < sizeof(schemes) / sizeof(*schemes); i++)
        if (text_equal(scheme, text_from(schemes[i].scheme)))
            hop.tls = schemes[i].tls;
    if ((end = text_find(url, '@')) != TEXT_NONE) {
        label = text_before(url, end);
        url = text_after(url, end + 1);
    }
    if (open || text_equal(scheme, TEXT("smtp+notls")))
        hop.options = open ? TEXT("tls=encrypt") : TEXT("tls=none");
    if (label.length > 0)
        opensmtpd_login(im, auth, label, &hop);
    return import_split_host(url, &hop) ? import_target(im, &hop) : NULL;
}

static const char *
opensmtpd_maildir(struct import *im, struct text path)
{
    static const char *const words[][2] = {
        {"%{user.username}",  "%u"      },
        {"%{rcpt.user}",      "%u"      },
        {"%{dest.user}",      "%u"      },
        {"%{user.directory}", "/home/%u"},
        {"~",                 "/home/%u"},
        {"%{rcpt.domain}",    "%d"      },
        {"%{dest.domain}",    "%d"      }
    };
    struct buffer out;
    buffer_init(&out, IMPORT_VALUE_MAX);
    while (path.length > 0) {
        size_t taken = 0;
        for (size_t i = 0; i < sizeof(words) / sizeof(*words) && taken == 0; i++)
            if (text_starts(path, text_from(words[i][0]))) {
                (void)!buffer_add(&out, text_from(words[i][1]));
                taken = strlen(words[i][0]);
            }
        if (taken == 0)
            (void)!buffer_add_byte(&out, path.at[0]);
        path = text_after(path, taken > 0 ? taken : 1);
    }
    const char *target =
        import_format(im, "maildir:%.*s", TEXT_ARGS(buffer_text(&out)));
    buffer_free(&out);
    return target;
}

/* The target of an action; NULL: Petrel has nothing of the kind. */
static const char *
opensmtpd_target(struct import *im, struct text action, struct import_line **line)
{
    struct text rest = opensmtpd_line(im, "action", action, line), method, word;
    struct text path = TEXT("");
    if (*line == NULL || !import_word(&rest, &method))
        return NULL;
    if (text_equal(method, TEXT("relay")))
        return opensmtpd_relay(im, *line, rest);
    while (import_word(&rest, &word)) {
        bool is_alias =
            text_equal(word, TEXT("alias")) || text_equal(word, TEXT("virtual"));
        struct import_line *table;
        if (!is_alias && path.length == 0 && !text_equal(word, TEXT("junk")))
            path = word;
        if (!is_alias || !import_word(&rest, &word))
            continue;
        struct text file =
            text_trim(opensmtpd_line(im, "table", text_within(word, '<', '>'), &table));
        file = text_after(file, text_starts(file, TEXT("file:")) ? 5 : 0);
        if (table != NULL && table->fate != IMPORT_TAKEN)
            import_alias_file(im, table, import_unquote(file));
    }
    if (text_equal(method, TEXT("maildir")))
        return opensmtpd_maildir(im, path.length > 0 ? path : TEXT("~/Maildir"));
    if (text_equal(method, TEXT("lmtp")) && path.length > 0)
        return import_format(im, path.at[0] == '/' ? "lmtp://unix:%.*s" : "lmtp://%.*s",
                             TEXT_ARGS(path));
    return NULL;
}

/* Each word, or each entry of a table, to a setting. */
static void
opensmtpd_put_all(struct import *im, struct import_line *line, struct text word,
                  const char *key, const char *suffix)
{
    struct text rest = opensmtpd_table(im, word), one;
    while (text_word(&rest, ",{}\" \t\r\n", &one))
        import_put(im, line, key, import_format(im, "%.*s%s", TEXT_ARGS(one), suffix));
}

/* --- OpenSMTPD: acts -------------------------------------------------------------- */

struct opensmtpd_match {
    struct text source, domain, action;
    bool from_all, from_auth, local, any, rejects;
    const char *odd;
};

/* One word, or a list between braces. */
static struct text
opensmtpd_words(struct text *rest)
{
    struct text words = TEXT("");
    *rest = text_trim(*rest);
    size_t end = text_starts(*rest, TEXT("{")) ? text_find(*rest, '}') : TEXT_NONE;
    if (end == TEXT_NONE) {
        (void)import_word(rest, &words);
        return words;
    }
    words = text_before(*rest, end + 1);
    *rest = text_after(*rest, end + 1);
    return words;
}

static struct opensmtpd_match
opensmtpd_read_match(struct import *im, struct text rest)
{
    struct opensmtpd_match m = {0};
    struct text word;
    while (import_word(&rest, &word)) {
        bool from = text_equal(word, TEXT("from")),
             for_ = text_equal(word, TEXT("for"));
        if ((from || for_) && !import_word(&rest, &word))
            break;
        if (from && text_equal(word, TEXT("any")))
            m.from_all = true;
        else if (from && text_equal(word, TEXT("src")))
            m.source = opensmtpd_words(&rest);
        else if ((from || !for_) && text_equal(word, TEXT("auth")))
            m.from_auth = true;
        else if (for_ && text_equal(word, TEXT("local")))
            m.local = true;
        else if (for_ && text_equal(word, TEXT("any")))
            m.any = true;
        else if (for_ && text_equal(word, TEXT("domain")))
            m.domain = opensmtpd_words(&rest);
        else if (text_equal(word, TEXT("action")))
            (void)import_word(&rest, &m.action);
        else if (text_equal(word, TEXT("reject")))
            m.rejects = true;
        else if (!text_equal(word, TEXT("local")) && !text_equal(word, TEXT("socket")))
            m.odd = import_format(im, "Petrel has no condition %.*s",
                                  TEXT_ARGS(text_before(word, 40)));
    }
    return m;
}

/* NULL, or why Petrel would accept from more clients, or for more domains. */
static const char *
opensmtpd_restricts(const struct opensmtpd_match *m)
{
    if (m->rejects)
        return m->source.length + m->domain.length > 0 || m->local || m->from_auth
                   ? "Petrel refuses no such mail if another line accepts it"
                   : NULL;
    if (m->source.length > 0 && m->from_auth)
        return "clients of relay_from need no login; write relay_from = NETWORKS, or "
               "auth_users = FILE";
    return m->source.length > 0 && !m->any
               ? "clients of relay_from may send to all domains; write relay_from = "
                 "NETWORKS if these may"
               : NULL;
}

static void
opensmtpd_match(struct import *im, struct import_line *line)
{
    struct opensmtpd_match m = opensmtpd_read_match(im, text_from(line->value));
    struct import_line *action;
    if (m.odd == NULL)
        m.odd = opensmtpd_restricts(&m);
    if (m.odd != NULL || m.rejects) {
        import_say(line, m.odd != NULL ? IMPORT_LEFT : IMPORT_NEEDLESS,
                   m.odd != NULL ? m.odd : "what no other line accepts is refused");
        return;
    }
    const char *target = opensmtpd_target(im, m.action, &action);
    if (target == NULL) {
        import_say(line, IMPORT_LEFT,
                   "Petrel has no such action; write routes or local");
        return;
    }
    bool is_mx = strcmp(target, "mx") == 0;
    bool is_local =
        strncmp(target, "maildir:", 8) == 0 || strncmp(target, "lmtp:", 5) == 0;
    import_say(
        line, IMPORT_TAKEN,
        m.from_all && m.any && !m.from_auth
            ? "not from any, which would make an open relay: relay_from says who "
              "may send"
            : NULL);
    if (m.source.length > 0) {
        opensmtpd_put_all(im, line, TEXT("127.0.0.0/8 ::1"), "relay_from", "");
        opensmtpd_put_all(im, line, m.source, "relay_from", "");
    }
    if (m.domain.length > 0 && (is_local || m.from_all))
        opensmtpd_put_all(im, line, m.domain, "local_domains", "");
    if (m.domain.length > 0 && !is_local)
        opensmtpd_put_all(im, line, m.domain, "routes",
                          import_format(im, " %s", target));
    if (is_local && (m.domain.length > 0 || m.local))
        import_put(im, line, "local", target);
    if (m.any && !is_mx)
        import_put(im, line, "relay", target);
    if (m.from_auth && line->setting == NULL)
        line->setting = "auth_users";
    if (line->setting == NULL)
        import_say(line, IMPORT_NEEDLESS, "Petrel does so anyway");
    if (action->fate == IMPORT_UNKNOWN || action->setting == NULL)
        action->setting = line->setting, action->fate = line->fate;
}

static void
opensmtpd_listen(struct import *im, struct import_line *line)
{
    struct text rest = text_from(line->value), word, at = TEXT(""), port = TEXT("");
    bool tls = false, auth = false, requires = false, verifies = false;
    while (import_word(&rest, &word)) {
        if (text_equal(word, TEXT("on")))
            (void)import_word(&rest, &at);
        else if (text_equal(word, TEXT("port")))
            (void)import_word(&rest, &port);
        else if (text_equal(word, TEXT("filter")) || text_equal(word, TEXT("mask-src")))
            line->why = import_format(im, "without %.*s", TEXT_ARGS(word));
        tls = tls || text_equal(word, TEXT("smtps"));
        requires = requires || text_equal(word, TEXT("tls-require"));
        verifies = verifies || text_equal(word, TEXT("verify"));
        auth = auth || text_equal(word, TEXT("auth"));
    }
    if (tls && port.length == 0)
        port = TEXT("465");
    if (text_equal(at, TEXT("socket")))
        import_say(line, IMPORT_NEEDLESS, "sendmail(1) writes into the spool");
    else if (auth)
        import_say(
            line, IMPORT_LEFT,
            "passwords are not imported: add ADDRESS:PORT?auth=required to listen, and "
            "make auth_users = FILE with `petrel passwd USER`");
    else if (verifies)
        import_say(
            line, IMPORT_LEFT,
            "it demands client certificates: Petrel takes mail without them, and "
            "lets those of relay_client_certificates relay");
    else if (requires && !tls)
        import_say(
            line, IMPORT_LEFT,
            "tls-require: Petrel takes mail without STARTTLS, too; write listen = "
            "ADDRESS:465?tls, or ADDRESS:PORT if that may be");
    else
        import_listen(im, line, at, port, tls ? "?tls" : "");
}

/* "4h, 1d": all are an option of routes, the first is a setting. */
static void
opensmtpd_times(struct import *im, struct import_line *line, struct text times)
{
    struct buffer all;
    struct text one;
    buffer_init(&all, IMPORT_VALUE_MAX);
    while (text_word(&times, ", \t", &one))
        (void)!buffer_format(&all, "%s%.*s", all.length > 0 ? "," : "", TEXT_ARGS(one));
    if (text_find(buffer_text(&all), ',') != TEXT_NONE)
        line->why = import_format(im,
                                  "the first time alone; for all of them write "
                                  "?notices=%.*s behind the host of `relay`",
                                  TEXT_ARGS(buffer_text(&all)));
    buffer_free(&all);
}

/* The second or third word of lines such as "pki NAME cert PATH". */
static void
opensmtpd_value(struct import *im, struct import_line *line)
{
    static const struct {
        const char *line, *word, *setting;
    } words[] = {
        {"pki",    "cert",             "tls_certificate"       },
        {"pki",    "key",              "tls_key"               },
        {"ca",     "cert",             "tls_ca"                },
        {"queue",  "ttl",              "maximal_queue_lifetime"},
        {"smtp",   "max-message-size", "message_size_limit"    },
        {"bounce", "warn-interval",    "delay_warning_time"    }
    };
    struct text rest = text_from(line->value), word;
    import_say(line, IMPORT_LEFT, line->row->with);
    while (import_word(&rest, &word))
        for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++)
            if (strcmp(line->name, words[i].line) == 0 &&
                text_equal(word, text_from(words[i].word)) &&
                import_word(&rest, &word)) {
                import_say(line, IMPORT_TAKEN, NULL);
                import_put(im, line, words[i].setting,
                           import_keep(im, text_before(word, text_find(word, ','))));
                if (strcmp(line->name, "bounce") == 0)
                    opensmtpd_times(im, line,
                                    text_of(word.at, word.length + rest.length));
                break;
            }
}

/* The lines that use it say what becomes of it. */
static void
opensmtpd_wait(struct import *im, struct import_line *line)
{
    (void)im, (void)line;
}

static void
opensmtpd_end(struct import *im)
{
    for (size_t i = 0; i < im->count; i++) {
        struct import_line *line = &im->lines[i];
        bool waits =
            strcmp(line->name, "action") == 0 || strcmp(line->name, "table") == 0;
        if (line->setting != NULL && strcmp(line->setting, "auth_users") == 0) {
            line->setting = NULL;
            import_say(line, IMPORT_LEFT,
                       "passwords are not imported; write auth_users = FILE, "
                       "made by `petrel passwd USER`");
        } else if (waits && line->fate == IMPORT_UNKNOWN && line->of == NULL)
            import_say(line, IMPORT_LEFT, "no line that was imported uses it");
    }
}

/* clang-format off */
static const struct import_row opensmtpd_rows[] = {
    {"listen", opensmtpd_listen, NULL, NULL},
    {"match", opensmtpd_match, NULL, NULL},
    {"table action", opensmtpd_wait, NULL, NULL},
    {"pki", opensmtpd_value, "write tls_certificate = FILE and tls_key = FILE", NULL},
    {"ca", opensmtpd_value, "write tls_ca = FILE", NULL},
    {"queue", opensmtpd_value, "Petrel neither compresses nor encrypts its queue", NULL},
    {"smtp", opensmtpd_value, "petrel.conf(5) has the limits of Petrel", NULL},
    {"bounce", opensmtpd_value, "write delay_warning_time = TIME", NULL},
    {"filter proc", import_leave, "Petrel starts no filters; for dkimsign write dkim_keys = "
        "DIRECTORY", NULL},
    {"srs", import_leave, "write srs_secret = TEXT", NULL},
    {"include", import_leave, "import that file by itself", NULL},
    {"mda mta admd", import_needless, "Petrel has nothing of the kind", NULL},
    {NULL, NULL, NULL, NULL},
};
/* clang-format on */
const struct import_kind import_opensmtpd = {
    "opensmtpd",     "smtpd.conf",  opensmtpd_read, opensmtpd_rows,
    opensmtpd_begin, opensmtpd_end, false};

/* --- Exim ------------------------------------------------------------------------- */

/* HOST::PORT, with semicolons between several. */
static void
exim_smarthost(struct import *im, struct import_line *line)
{
    struct text rest = import_unquote(text_from(line->value)), one;
    struct import_line beside = {.file = line->file, .name = "passwd.client"};
    import_say(line, IMPORT_NEEDLESS, "it is empty: mail goes to the MX hosts");
    (void)import_entries(im, &beside, TEXT("passwd.client"), ":", import_take_login);
    while (text_word(&rest, "; ", &one)) {
        struct import_hop hop = {.host = text_before(one, text_find(one, ':'))};
        hop.port = text_after(one, text_find_last(one, ':') + 1);
        hop.tls = text_equal(hop.port, TEXT("465")) ? IMPORT_TLS_FIRST : IMPORT_TLS_MAY;
        if (hop.host.length == one.length)
            hop.port = TEXT("");
        (void)import_find_login(im, hop.host, &hop);
        import_put(im, line, "relay", import_target(im, &hop));
    }
}

/* ADDRESS, or ADDRESS.PORT. */
static void
exim_interfaces(struct import *im, struct import_line *line)
{
    struct text rest = import_unquote(text_from(line->value)), one;
    struct net_address ip;
    if (rest.length == 0)
        import_listen(im, line, TEXT("all"), TEXT("25"), "");
    while (text_word(&rest, "; ", &one)) {
        /* ADDRESS, ADDRESS.PORT or [ADDRESS]:PORT */
        bool boxed = text_starts(one, TEXT("["));
        size_t dot = net_address_parse_ip(one, &ip)  ? TEXT_NONE
                     : !boxed                        ? text_find_last(one, '.')
                     : one.at[one.length - 1] == ']' ? TEXT_NONE
                                                     : text_find_last(one, ':');
        import_listen(im, line, text_before(one, dot),
                      dot == TEXT_NONE ? TEXT("25") : text_after(one, dot + 1), "");
    }
}

static void
exim_type(struct import *im, struct import_line *line)
{
    struct text type = import_unquote(text_from(line->value));
    if (text_equal(type, TEXT("smarthost")) || text_equal(type, TEXT("satellite")))
        line->setting = "relay", import_say(line, IMPORT_TAKEN, NULL);
    else if (text_equal(type, TEXT("internet")))
        import_say(line, IMPORT_NEEDLESS, "mail goes to the MX hosts");
    else
        import_put(im, line, "routes",
                   "* error:5.7.1 this host sends no mail to others");
}

static void
exim_hidden(struct import *im, struct import_line *line)
{
    struct text name = import_value(im, "dc_readhost");
    if (!text_equal(import_unquote(text_from(line->value)), TEXT("true")))
        import_say(line, IMPORT_NEEDLESS, "addresses are not rewritten");
    else if (name.length > 0)
        import_put(im, line, "rewrite",
                   import_format(im, "local @%.*s", TEXT_ARGS(name)));
    else
        import_say(line, IMPORT_LEFT,
                   "dc_readhost is empty; write rewrite = local @DOMAIN");
}

/* Lists of domains have colons or semicolons. */
static void
exim_domains(struct import *im, struct import_line *line)
{
    struct text rest = import_unquote(text_from(line->value)), one;
    import_say(line, IMPORT_NEEDLESS, "it is empty");
    while (text_word(&rest, ":; ", &one)) {
        import_put(im, line, "local_domains", import_keep(im, one));
        if (line->row->with != NULL)
            import_put(im, line, "routes",
                       import_format(im, "%.*s mx", TEXT_ARGS(one)));
    }
    if (line->row->with == NULL && line->fate == IMPORT_TAKEN)
        line->why = "without `local` their mail goes to relay";
}

static void
exim_address(struct import *im, struct import_line *entry)
{
    struct text host = import_value(im, "mailname");
    bool is_bare = strchr(entry->name, '@') == NULL;
    import_put(im, entry, "rewrite",
               import_format(im, "%s%s%.*s %s", entry->name, is_bare ? "@" : "",
                             TEXT_ARGS(is_bare ? host : TEXT("")), entry->value));
}

/* Debian's Exim reads the macros beside the answers to debconf, too. */
static void
exim_begin(struct import *im)
{
    const char *file = im->count > 0 ? im->lines[0].file : NULL, *name, *why;
    struct text content;
    if (file != NULL &&
        text_ends_nocase(text_from(file), TEXT("update-exim4.conf.conf")) &&
        import_read(im, file, "exim4.conf.localmacros", &content, &name, &why))
        import_read_equals(im, name, content);
}

/* Debian's Exim has two files in the directory above. */
static void
exim_end(struct import *im)
{
    const char *file = im->lines[0].file, *name, *why;
    struct import_line beside = {.file = file, .name = "email-addresses"}, *line;
    struct text content;
    if (import_read(im, file, "../mailname", &content, &name, &why) &&
        (line = import_add(im, name, 1, TEXT("mailname"),
                           text_before(content, text_find(content, '\n')))) != NULL) {
        import_say(line, IMPORT_NEEDLESS, "MAIN_HARDCODE_PRIMARY_HOSTNAME is hostname");
        if (!import_has(im, "hostname"))
            import_put(im, line, "hostname", line->value);
    }
    (void)import_entries(im, &beside, TEXT("../email-addresses"), ":", exim_address);
}

/* clang-format off */
static const struct import_row exim_rows[] = {
    {"dc_eximconfig_configtype", exim_type, NULL, NULL},
    {"dc_smarthost", exim_smarthost, NULL, NULL},
    {"dc_other_hostnames", exim_domains, NULL, NULL},
    {"dc_relay_domains", exim_domains, "routes", NULL},
    {"dc_local_interfaces", exim_interfaces, NULL, NULL},
    {"dc_relay_nets", import_networks, "relay_from", "%"},
    {"dc_hide_mailname", exim_hidden, NULL, NULL},
    {"dc_readhost", import_share, "rewrite", NULL},
    {"dc_localdelivery", import_leave, "write local = maildir:/home/%u/Maildir; its directories "
        "must be the daemon's", NULL},
    {"MAIN_TLS_CERTIFICATE", import_as, "tls_certificate", NULL},
    {"MAIN_TLS_PRIVATEKEY", import_as, "tls_key", NULL},
    {"MAIN_HARDCODE_PRIMARY_HOSTNAME", import_as, "hostname", NULL},
    {"MESSAGE_SIZE_LIMIT", import_as, "message_size_limit", NULL},
    {"DKIM_*", import_leave, "write dkim_keys = DOMAIN SELECTOR FILE", NULL},
    {"dc_minimaldns dc_mailname_in_oh CFILEMODE dc_use_split_config MAIN_TLS_ENABLE "
        "AUTH_CLIENT_* REMOTE_SMTP_*", import_needless, "Petrel has nothing of the kind", NULL},
    {NULL, NULL, NULL, NULL},
};
/* clang-format on */
const struct import_kind import_exim = {"exim",
                                        "update-exim4.conf.conf exim4.conf.localmacros",
                                        import_read_equals,
                                        exim_rows,
                                        exim_begin,
                                        exim_end,
                                        false};
