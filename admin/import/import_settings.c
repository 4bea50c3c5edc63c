/* The settings that come of lines; next hops, and their passwords. */
#include "admin/import/import.h"

#include "admin/settings/options.h"
#include "admin/setup/init_plan.h"
#include "base/net_address.h"
#include "base/settings/settings_value.h"
#include "sched/route/secrets.h"

#include <stdio.h>
#include <string.h>

/* --- Settings --------------------------------------------------------------------- */

static struct import_setting *
import_setting_of(const struct import *im, const char *key)
{
    for (size_t i = 0; i < im->setting_count; i++)
        if (strcmp(im->settings[i].key, key) == 0)
            return (struct import_setting *)&im->settings[i];
    return NULL;
}

bool
import_has(const struct import *im, const char *key)
{
    return import_setting_of(im, key) != NULL;
}

void
import_say(struct import_line *line, enum import_fate fate, const char *why)
{
    line->fate = fate;
    line->why = why;
    if (fate == IMPORT_LEFT || fate == IMPORT_NEEDLESS)
        line->setting = NULL;
}

/* In tables the first line with a pattern counts, and a second one is an error. NULL:
 * there is none; else the entry. */
static struct text
import_find_entry(const struct import_setting *s, struct text entry)
{
    struct text rest = buffer_text(&s->value), one;
    bool by_pattern =
        strstr(s->key, "routes") != NULL || strcmp(s->key, "rewrite") == 0;
    if (by_pattern)
        entry = text_before(entry, text_find(entry, ' '));
    while (text_cut(&rest, '\n', &one)) {
        one = text_before(one, one.length - text_ends_nocase(one, TEXT(",")));
        if (text_equal(by_pattern ? text_before(one, text_find(one, ' ')) : one, entry))
            return one;
    }
    return TEXT("");
}

static struct import_setting *
import_open(struct import *im, const char *key)
{
    struct import_setting *s = import_setting_of(im, key);
    if (s == NULL && im->setting_count < IMPORT_SETTINGS_MAX) {
        s = &im->settings[im->setting_count++];
        *s = (struct import_setting){.key = key};
        buffer_init(&s->value, IMPORT_TEXT_MAX);
    }
    return s;
}

/* Another value takes the place of that of a line before. */
static void
import_replace(struct import *im, const struct import_line *by, const char *key)
{
    for (size_t i = 0; i < im->count; i++) {
        struct import_line *l = &im->lines[i];
        if (l != by && l->fate == IMPORT_TAKEN && l->setting != NULL &&
            strcmp(l->setting, key) == 0)
            import_say(l, IMPORT_NEEDLESS, "another line is for the same setting");
    }
}

void
import_put(struct import *im, struct import_line *line, const char *key,
           const char *entry)
{
    struct text value = text_trim(text_from(entry)), old = TEXT("");
    const struct setting *row = settings_find(options_rows, text_from(key));
    bool is_relay = strcmp(key, "relay") == 0; /* a list with commas */
    bool is_list = is_relay || (row != NULL && row->kind == SETTING_LIST);
    bool good = value.length > 0 && !text_has_control(value) && text_is_utf8(value);
    struct import_setting *s = good ? import_open(im, key) : NULL;
    if (s != NULL && !is_list && s->value.length > 0) { /* the last line counts */
        if (line != NULL && !text_equal(buffer_text(&s->value), value))
            import_replace(im, line, key);
        buffer_clear(&s->value);
    }
    if (s != NULL)
        old = import_find_entry(s, value);
    if (s != NULL && old.length == 0)
        good = buffer_format(&s->value, "%s%.*s",
                             s->value.length == 0 ? ""
                             : is_relay           ? ",\n"
                                                  : "\n",
                             TEXT_ARGS(value));
    if (line == NULL)
        return;
    line->setting = key;
    if (s == NULL || !good)
        import_say(line, IMPORT_LEFT, "the value is empty, too long, or no text");
    else if (old.length > 0 && !text_equal(old, value) && line->fate != IMPORT_TAKEN)
        import_say(line, IMPORT_NEEDLESS, "a line before it is for the same addresses");
    else if (line->fate != IMPORT_LEFT) /* a part of it is */
        import_say(line, IMPORT_TAKEN, line->fate == IMPORT_TAKEN ? line->why : NULL);
}

bool
import_waits(const struct import *im, const struct import_setting *s)
{
    bool is_empty = strcmp(s->key, "auth_passwords") == 0 && im->passwords.length == 0;
    return im->lacks_password != NULL && (is_empty || strcmp(s->key, "relay") == 0 ||
                                          strcmp(s->key, "sender_routes") == 0);
}

void
import_write(const struct import *im, struct buffer *out)
{
    (void)!buffer_format(
        out,
        "# Written by `petrel import` from the settings of %s. petrel.conf(5) has\n"
        "# all settings. All users can read this file: keep passwords elsewhere.\n",
        im->kind->name);
    if (import_lacks_relay(im))
        (void)!buffer_format(
            out, "# No smarthost could be taken. Mail is kept until `relay` is "
                 "set; then\n# remove `routes = * hold`.\n");
    for (size_t i = 0; i < im->setting_count; i++) {
        const struct import_setting *s = &im->settings[i];
        struct text rest = buffer_text(&s->value), entry;
        const char *mark = import_waits(im, s) ? "# " : "";
        if (s->error != NULL)
            continue;
        init_plan_write_help(s->key, out);
        if (mark[0] != '\0')
            (void)!buffer_format(out,
                                 "# Mail is kept until %s has the password of\n"
                                 "# %s; then remove the # below, and "
                                 "`routes = * hold`.\n",
                                 "`auth_passwords`", im->lacks_password);
        (void)!buffer_format(out, "%s%s =", mark, s->key);
        bool many = memchr(s->value.at, '\n', s->value.length) != NULL;
        while (text_cut(&rest, '\n', &entry))
            (void)!buffer_format(out, many ? "\n%s    %.*s" : "%.0s %.*s", mark,
                                 TEXT_ARGS(entry));
        (void)!buffer_add_byte(out, '\n');
    }
}

/* --- Next hops -------------------------------------------------------------------- */

/* 0: it is none. */
static unsigned
import_port(struct text port, unsigned preset)
{
    static const char *const services[] = {"smtp",        "25",  "submission", "587",
                                           "submissions", "465", "smtps",      "465",
                                           "ssmtp",       "465", NULL};
    uint64_t number;
    for (size_t i = 0; services[i] != NULL; i += 2)
        if (text_equal_nocase(port, text_from(services[i])))
            port = text_from(services[i + 1]);
    if (port.length == 0)
        return preset;
    return text_number(port, 65535, &number) ? (unsigned)number : 0;
}

bool
import_split_host(struct text t, struct import_hop *hop)
{
    t = text_trim(t);
    bool bracket = t.length > 0 && t.at[0] == '[';
    size_t end = text_find(t, bracket ? ']' : ':');
    if (bracket && end == TEXT_NONE)
        return false;
    hop->host = text_before(text_after(t, bracket), end - bracket);
    struct text rest = end == TEXT_NONE ? TEXT("") : text_after(t, end + bracket);
    hop->port = text_after(rest, 1);
    return hop->host.length > 0 && (rest.length == 0 || rest.at[0] == ':') &&
           import_port(hop->port, 25) > 0;
}

static void
import_login(struct import *im, const struct import_hop *hop, const char *host,
             unsigned port)
{
    struct buffer line;
    buffer_init(&line, 2 * SECRETS_PASSWORD_MAX);
    bool good =
        hop->password.length > 0 && secrets_error(hop->password) == NULL &&
        buffer_format(&line, "%s:%u %.*s %s%.*s\n", host, port, TEXT_ARGS(hop->user),
                      hop->password.at[0] == '@' ? "@" : "", TEXT_ARGS(hop->password));
    struct text own = buffer_text(&line), all = buffer_text(&im->passwords);
    bool is_there = good && memmem(all.at, all.length, own.at, own.length) != NULL;
    if (!good)
        im->lacks_password =
            import_format(im, "%.*s at %s:%u", TEXT_ARGS(hop->user), host, port);
    else if (!is_there && !buffer_add(&im->passwords, own))
        im->lacks_password = "a login beyond 1 MiB of them";
    buffer_forget(&line);
}

const char *
import_target(struct import *im, const struct import_hop *hop)
{
    static const char *const schemes[] = {"smtp", "smtp", "submission", "smtps"};
    static const unsigned presets[] = {25, 25, 587, 465};
    struct net_address ip;
    bool is_ip = net_address_parse_ip(hop->host, &ip);
    bool is_own = is_ip ? net_address_is_loopback(&ip)
                        : text_equal_nocase(hop->host, TEXT("localhost"));
    enum import_tls tls = hop->tls;
    if (tls == IMPORT_TLS_MAY && hop->user.length > 0 && !is_own)
        tls = IMPORT_TLS_START;
    unsigned preset = presets[tls];
    unsigned port = import_port(hop->port, tls == IMPORT_TLS_START ? 25 : preset);
    bool plain = tls == IMPORT_TLS_START && port == 25;
    const char *option = tls == IMPORT_TLS_ENCRYPT ? "tls=encrypt" : "";
    const char *host =
        import_format(im, is_ip ? "[%.*s]" : "%.*s", TEXT_ARGS(hop->host));
    struct buffer user;
    buffer_init(&user, 3 * SECRETS_USER_MAX + 3);
    init_plan_encode(hop->user, &user);
    const char *url =
        import_format(im, "%s://%.*s%s%s", plain ? "smtp+starttls" : schemes[tls],
                      TEXT_ARGS(buffer_text(&user)), user.length > 0 ? "@" : "", host);
    buffer_free(&user);
    if (port != (plain ? 25 : preset))
        url = import_format(im, "%s:%u", url, port);
    if (option[0] != '\0' || hop->options.length > 0)
        url = import_format(im, "%s?%s%s%.*s", url, option,
                            option[0] != '\0' && hop->options.length > 0 ? "&" : "",
                            TEXT_ARGS(hop->options));
    if (hop->user.length > 0)
        import_login(im, hop, host, port);
    return url;
}

void
import_take_login(struct import *im, struct import_line *entry)
{
    (void)im;
    import_say(entry, IMPORT_NEEDLESS, "mail goes to no such host");
    entry->is_login = true;
}

/* A name may begin with *, as of Exim. */
bool
import_find_login(struct import *im, struct text host, struct import_hop *hop)
{
    for (size_t i = 0; i < im->count; i++) {
        struct import_line *l = &im->lines[i];
        struct text name = text_from(l->name), value = text_from(l->value);
        bool any = name.length > 0 && name.at[0] == '*';
        if (!l->is_login || !(any ? text_ends_nocase(host, text_after(name, 1))
                                  : text_equal_nocase(host, name)))
            continue;
        hop->user = text_before(value, text_find(value, ':'));
        hop->password = text_after(value, hop->user.length + 1);
        l->setting = "auth_passwords";
        import_say(l, IMPORT_TAKEN, NULL);
        return true;
    }
    return false;
}

void
import_listen(struct import *im, struct import_line *line, struct text host,
              struct text port, const char *options)
{
    static const char *const places[] = {"0.0.0.0", "[::]", "127.0.0.1", "[::1]"};
    bool all = text_equal_nocase(host, TEXT("all")) || text_equal(host, TEXT("egress"));
    bool own = text_starts_nocase(host, TEXT("lo"));
    struct net_address ip;
    unsigned number = import_port(port, 25);
    for (int i = own ? 2 : 0; (all || own) && i < (own ? 4 : 2); i++)
        import_put(im, line, "listen",
                   import_format(im, "%s:%u%s", places[i], number, options));
    host = text_within(host, '[', ']');
    if (net_address_parse_ip(host, &ip))
        import_put(im, line, "listen",
                   import_format(im,
                                 ip.family == NET_IPV6 ? "[%.*s]:%u%s" : "%.*s:%u%s",
                                 TEXT_ARGS(host), number, options));
    else if (!all && !own && line != NULL)
        import_say(line, IMPORT_LEFT,
                   "a name is no address; write listen = ADDRESS:PORT");
}

void
import_settle(struct import *im)
{
    for (size_t i = 0; i < im->count; i++) {
        struct import_line *line = &im->lines[i];
        const struct import_setting *s =
            line->setting != NULL ? import_setting_of(im, line->setting) : NULL;
        if (line->fate != IMPORT_TAKEN || line->setting == NULL)
            continue;
        if (s == NULL)
            import_say(
                line, IMPORT_NEEDLESS,
                import_format(im, "no %s comes of the other lines", line->setting));
        else if (s->error != NULL)
            import_say(line, IMPORT_LEFT, s->error);
    }
}
