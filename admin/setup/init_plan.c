/* Turns answers into settings. */
#include "admin/setup/init_plan.h"

#include "admin/settings/options.h"
#include "base/net_address.h"
#include "base/settings/settings_value.h"
#include "mime/address.h"
#include "sched/route/target.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

enum { SMTP_PORT = 25 };

static bool
init_wrong(char why[INIT_WHY_MAX], const char *sentence)
{
    snprintf(why, INIT_WHY_MAX, "%s", sentence);
    return false;
}

/* An answer is short: the value made of it fits. */
static void
init_set(char to[INIT_VALUE_MAX], const char *before, struct text value)
{
    int length = snprintf(to, INIT_VALUE_MAX, "%s%.*s", before, TEXT_ARGS(value));
    assert(length < INIT_VALUE_MAX);
}

/* --- Providers -------------------------------------------------------------------- */

/* "Microsoft 365" is microsoft365. */
static void
init_short_name(struct text name, char out[INIT_VALUE_MAX])
{
    size_t used = 0;
    for (size_t i = 0; i < name.length && used + 1 < INIT_VALUE_MAX; i++) {
        char c = name.at[i];
        if (c >= 'A' && c <= 'Z')
            c = (char)(c - 'A' + 'a');
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
            out[used++] = c;
    }
    out[used] = '\0';
}

void
init_plan_providers(struct buffer *out)
{
    char name[INIT_VALUE_MAX], last[INIT_VALUE_MAX] = "";
    const struct provider_facts *facts;
    for (size_t i = 0; (facts = provider_facts_at(i)) != NULL; i++) {
        init_short_name(text_from(facts->name), name);
        if (strcmp(name, last) != 0)
            (void)!buffer_format(out, "%s%s", i > 0 ? ", " : "", name);
        memcpy(last, name, sizeof(last));
    }
}

/* "ses" of "Amazon SES". */
static bool
init_has_word(struct text name, struct text wanted)
{
    struct text word;
    while (text_word(&name, " ", &word))
        if (text_equal_nocase(word, wanted))
            return true;
    return false;
}

/* The first whose name begins so ("microsoft"), else that has this word. */
static const struct provider_facts *
init_find_provider(struct text answer)
{
    char wanted[INIT_VALUE_MAX], name[INIT_VALUE_MAX];
    const struct provider_facts *facts;
    init_short_name(answer, wanted);
    for (size_t i = 0; (facts = provider_facts_at(i)) != NULL; i++) {
        init_short_name(text_from(facts->name), name);
        if (strlen(wanted) >= 3 && strncmp(name, wanted, strlen(wanted)) == 0)
            return facts;
    }
    for (size_t i = 0; (facts = provider_facts_at(i)) != NULL; i++)
        if (init_has_word(text_from(facts->name), answer))
            return facts;
    return NULL;
}

/* --- The smarthost ---------------------------------------------------------------- */

static bool
init_is_list(const struct init_plan *p)
{
    return strchr(p->relay, ',') != NULL;
}

/* The hosts as the daemon will read them. */
static void
init_read_relay(struct init_plan *p)
{
    static const struct transport_params base = {0};
    struct text rest = text_from(p->relay), one;
    char problem[TARGET_PROBLEM_MAX];
    struct target target;
    p->host[0] = p->url_user[0] = '\0';
    p->has_user = false;
    for (bool first = true; text_cut(&rest, ',', &one); first = false) {
        if (!target_parse(text_trim(one), SMTP_PORT, &base, &target, problem))
            continue;
        struct target_host h = target_host(&target, 0);
        p->has_user = p->has_user || h.user.length > 0;
        if (!first)
            continue;
        (void)!text_copy(p->host, sizeof(p->host), h.host);
        (void)!text_copy(p->url_user, sizeof(p->url_user), h.user);
    }
}

static bool
init_take_host(struct init_plan *p, struct text answer, char why[INIT_WHY_MAX])
{
    bool is_url = memmem(answer.at, answer.length, "://", 3) != NULL;
    bool is_host =
        text_find(answer, '.') != TEXT_NONE || text_find(answer, ':') != TEXT_NONE;
    const struct provider_facts *facts =
        is_url || is_host ? NULL : init_find_provider(answer);
    if (facts != NULL && strchr(facts->host, '*') != NULL) {
        snprintf(why, INIT_WHY_MAX,
                 "%s has a host for each region; write its name, as in "
                 "email-smtp.eu-central-1.amazonaws.com",
                 facts->name);
        return false;
    }
    if (facts == NULL && !is_url && !is_host) {
        struct buffer names;
        buffer_init(&names, INIT_WHY_MAX);
        init_plan_providers(&names);
        snprintf(
            why, INIT_WHY_MAX,
            "this is neither a provider nor a host; write %.*s, submission://HOST, "
            "mx or hold",
            TEXT_ARGS(buffer_text(&names)));
        buffer_free(&names);
        return false;
    }
    init_set(p->relay, is_url ? "" : "submission://",
             facts != NULL ? text_from(facts->host) : answer);
    init_read_relay(p);
    p->facts = provider_facts_find(text_from(p->host));
    p->way = INIT_SMARTHOST;
    return true;
}

static bool
init_take_relay(struct init_plan *p, struct text answer, char why[INIT_WHY_MAX])
{
    p->relay[0] = p->user[0] = '\0';
    init_read_relay(p);
    p->facts = NULL;
    if (answer.length == 0)
        return init_wrong(why, "an answer is needed; write a provider's name, "
                               "submission://HOST, mx or hold");
    if (text_equal_nocase(answer, TEXT("mx")))
        p->way = INIT_DIRECT;
    else if (text_equal_nocase(answer, TEXT("hold")))
        p->way = INIT_HOLD;
    else
        return init_take_host(p, answer, why);
    return true;
}

void
init_plan_encode(struct text user, struct buffer *out)
{
    for (size_t i = 0; i < user.length; i++) {
        unsigned char c = (unsigned char)user.at[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c >= '0' && c <= '9') || (c != '\0' && strchr("-._~", c) != NULL);
        (void)!buffer_format(out, plain ? "%c" : "%%%02X", c);
    }
}

/* The user goes into the URL, percent-encoded. */
static bool
init_take_user(struct init_plan *p, struct text answer, char why[INIT_WHY_MAX])
{
    const char *host = strstr(p->relay, "://");
    struct buffer relay;
    if (text_equal_nocase(answer, TEXT("none")))
        answer = TEXT("");
    if (answer.length == 0 && p->facts != NULL)
        return init_wrong(why, "this provider requires a login: write the user");
    if (answer.length == 0)
        return true;
    assert(host != NULL);
    host += 3;
    buffer_init(&relay, INIT_VALUE_MAX - 1);
    (void)!buffer_add(&relay, text_of(p->relay, (size_t)(host - p->relay)));
    init_plan_encode(answer, &relay);
    bool fits = buffer_format(&relay, "@%s", host);
    if (fits)
        (void)text_copy(p->relay, sizeof(p->relay), buffer_text(&relay));
    buffer_free(&relay);
    if (!fits)
        return init_wrong(why, "the user is too long; write at most 128 bytes");
    init_read_relay(p);
    init_set(p->user, "", answer);
    return true;
}

bool
init_plan_needs_password(const struct init_plan *p)
{
    return p->way == INIT_SMARTHOST && (p->has_user || p->user[0] != '\0');
}

static bool
init_is_address(const char *word)
{
    struct address address;
    struct text t = text_from(word);
    return text_find(t, '@') != TEXT_NONE && address_parse(t, &address) &&
           address.domain.length > 0 && text_find(address.domain, '.') != TEXT_NONE;
}

const char *
init_plan_oauth(const struct init_plan *p)
{
    if (p->facts == NULL)
        return NULL;
    return strcmp(p->facts->host, "smtp.office365.com") == 0 ? "microsoft"
           : strcmp(p->facts->host, "smtp.gmail.com") == 0   ? "google"
                                                             : NULL;
}

/* --- Other answers ---------------------------------------------------------------- */

static bool
init_is_none(struct text answer)
{
    return answer.length == 0 || text_equal_nocase(answer, TEXT("none")) ||
           text_equal_nocase(answer, TEXT("no"));
}

static bool
init_add(char list[INIT_VALUE_MAX], struct text item)
{
    size_t used = strlen(list);
    int length = snprintf(list + used, INIT_VALUE_MAX - used, "%s%.*s",
                          used > 0 ? ", " : "", TEXT_ARGS(item));
    return length < (int)(INIT_VALUE_MAX - used);
}

/* The check refuses other words than addresses with a port and networks, as the one for
 * which they were meant. */
static bool
init_take_listen(struct init_plan *p, struct text answer, char why[INIT_WHY_MAX])
{
    const char *port = p->is_root ? "25" : "2525";
    char listen[INIT_VALUE_MAX] = "", from[INIT_VALUE_MAX] = "";
    struct text rest = answer, item;
    if (answer.length == 0 || text_equal_nocase(answer, TEXT("local"))) {
        snprintf(p->listen, sizeof(p->listen), "127.0.0.1:%s", port);
        p->relay_from[0] = '\0';
        return true;
    }
    while (text_word(&rest, ", ", &item)) {
        struct net_network network;
        bool is_network =
            net_network_parse(item, &network) ||
            (text_find(item, '/') != TEXT_NONE && text_find(item, '?') == TEXT_NONE &&
             !text_starts(item, TEXT("unix:")));
        bool fits = init_add(is_network ? from : listen, item);
        if (!fits)
            return init_wrong(why, "the list is too long; write fewer networks");
    }
    if (listen[0] == '\0' && from[0] == '\0')
        return init_wrong(why, "the list is empty; write local, or a network such as "
                               "192.168.1.0/24");
    if (listen[0] == '\0')
        snprintf(listen, sizeof(listen), "0.0.0.0:%s, [::]:%s", port, port);
    memcpy(p->listen, listen, sizeof(listen));
    p->relay_from[0] = '\0';
    if (from[0] != '\0')
        init_set(p->relay_from, "127.0.0.0/8, ::1, ", text_from(from));
    return true;
}

static bool
init_take_one(struct init_plan *p, enum init_question question, struct text answer,
              char why[INIT_WHY_MAX])
{
    switch (question) {
    case INIT_HOSTNAME:
        if (answer.length == 0)
            return init_wrong(why, "a name is needed; write HOST.DOMAIN");
        init_set(p->hostname, "", answer);
        return true;
    case INIT_RELAY:
        return init_take_relay(p, answer, why);
    case INIT_USER:
        return init_take_user(p, answer, why);
    case INIT_LISTEN:
        return init_take_listen(p, answer, why);
    case INIT_ROOT:
        if (!init_is_none(answer) && text_find(answer, '@') == TEXT_NONE)
            return init_wrong(why, "this address has no domain, and there are no "
                                   "mailboxes here; write NAME@DOMAIN, or none");
        init_set(p->root, "", init_is_none(answer) ? TEXT("") : answer);
        return true;
    case INIT_HTTP:
        init_set(p->http, "",
                 init_is_none(answer)                     ? TEXT("")
                 : text_equal_nocase(answer, TEXT("yes")) ? TEXT("127.0.0.1:8025")
                                                          : answer);
        return true;
    case INIT_SENDER:
        if (!init_is_none(answer) && text_find(answer, '@') == TEXT_NONE)
            return init_wrong(why, "this address has no domain; write NAME@DOMAIN as "
                                   "the smarthost knows you, or none");
        init_set(p->sender, "", init_is_none(answer) ? TEXT("") : answer);
        return true;
    case INIT_QUESTIONS:
        break;
    }
    return false;
}

bool
init_plan_take(struct init_plan *p, enum init_question question, struct text answer,
               char why[INIT_WHY_MAX])
{
    struct init_plan before = *p;
    answer = text_trim(answer);
    if (answer.length > INIT_ANSWER_MAX)
        return init_wrong(why, "the answer is too long; write at most 1,000 bytes");
    if (text_has_control(answer) || !text_is_utf8(answer))
        return init_wrong(why, "the answer has control characters, or is not UTF-8; "
                               "write plain text");
    bool good = init_take_one(p, question, answer, why);
    if (!good)
        *p = before;
    return good;
}

bool
init_plan_asks(const struct init_plan *p, enum init_question question)
{
    if (question == INIT_SENDER)
        return p->way == INIT_SMARTHOST;
    return question != INIT_USER ||
           (p->way == INIT_SMARTHOST && !init_plan_needs_password(p) &&
            !init_is_list(p) && strstr(p->relay, "://") != NULL);
}

bool
init_plan_derives(const struct init_plan *p, enum init_question question)
{
    return question == INIT_SENDER && init_is_address(p->url_user);
}

/* Most smarthosts want the address of the account. Without one the reader of the mail
 * is more likely known there than root@ this host. */
static const char *
init_sender_preset(struct init_plan *p)
{
    init_set(p->proposed, "",
             text_from(init_is_address(p->url_user) ? p->url_user
                       : init_is_address(p->root)   ? p->root
                                                    : "none"));
    return p->proposed;
}

const char *
init_plan_preset(struct init_plan *p, enum init_question question)
{
    bool is_word = p->facts != NULL && p->facts->user[0] != '\0' &&
                   strchr(p->facts->user, ' ') == NULL;
    switch (question) {
    case INIT_HOSTNAME:
        return p->found;
    case INIT_USER:
        return is_word ? p->facts->user : p->facts != NULL ? NULL : "none";
    case INIT_LISTEN:
        return "local";
    case INIT_ROOT:
    case INIT_HTTP:
        return "none";
    case INIT_SENDER:
        return init_sender_preset(p);
    case INIT_RELAY:
    case INIT_QUESTIONS:
        break;
    }
    return NULL;
}

/* --- Settings --------------------------------------------------------------------- */

static void
init_setting(struct init_setting out[INIT_SETTINGS_MAX], size_t *count, const char *key,
             const char *value)
{
    assert(*count < INIT_SETTINGS_MAX);
    out[*count].key = key;
    init_set(out[(*count)++].value, "", text_from(value));
}

size_t
init_plan_settings(const struct init_plan *p, const char *password_file,
                   struct init_setting out[INIT_SETTINGS_MAX])
{
    size_t count = 0;
    if (p->daemon_user != NULL)
        init_setting(out, &count, "user", p->daemon_user);
    if (strcmp(p->hostname, p->found) != 0)
        init_setting(out, &count, "hostname", p->hostname);
    if (strcmp(p->listen, "127.0.0.1:2525") != 0)
        init_setting(out, &count, "listen", p->listen);
    if (p->relay_from[0] != '\0')
        init_setting(out, &count, "relay_from", p->relay_from);
    if (p->way == INIT_HOLD || p->has_oauth)
        init_setting(out, &count, "routes", "* hold");
    else if (p->way == INIT_SMARTHOST)
        init_setting(out, &count, "relay", p->relay);
    if (init_plan_needs_password(p) && !p->has_oauth)
        init_setting(out, &count, "relay_password_file", password_file);
    if (p->root[0] != '\0')
        init_setting(out, &count, "root", p->root);
    if (p->sender[0] != '\0') {
        char rewrite[INIT_VALUE_MAX];
        init_set(rewrite, "local ", text_from(p->sender));
        init_setting(out, &count, "rewrite", rewrite);
    }
    if (p->http[0] != '\0')
        init_setting(out, &count, "http", p->http);
    return count;
}

void
init_plan_write_help(const char *key, struct buffer *out)
{
    struct text name = text_from(key), line;
    if (text_ends_nocase(name, TEXT("_file")))
        name = text_before(name, name.length - 5);
    const struct setting *row = settings_find(options_rows, name);
    struct text help = text_from(row != NULL ? row->help : "");
    (void)!buffer_add_byte(out, '\n');
    while (help.length > 0 && text_cut(&help, '\n', &line))
        (void)!buffer_format(out, "# %.*s\n", TEXT_ARGS(line));
}

/* Two lines that take the place of `routes` when there is a client id. */
static void
init_write_oauth(const struct init_plan *p, struct buffer *out)
{
    (void)!buffer_format(
        out,
        "\n# Mail is kept until this program may log in at %s. Register an\n"
        "# application there (petrel.conf(5), \"Logging in with OAuth2\"), put its id "
        "for ID,\n# and let these two lines take the place of `routes`:\n"
        "# relay = %s\n# oauth = %s %s %s client=ID\n",
        p->host, p->relay, p->host, p->user, init_plan_oauth(p));
}

void
init_plan_write(const struct init_plan *p, const char *password_file,
                struct buffer *out)
{
    struct init_setting settings[INIT_SETTINGS_MAX];
    size_t count = init_plan_settings(p, password_file, settings);
    (void)!buffer_add(out,
                      TEXT("# Written by `petrel init`. petrel.conf(5) has all "
                           "settings. All users can read this\n# file (sendmail(1) "
                           "does): keep passwords in files of their own.\n"));
    for (size_t i = 0; i < count; i++) {
        init_plan_write_help(settings[i].key, out);
        (void)!buffer_format(out, "%s = %s\n", settings[i].key, settings[i].value);
    }
    if (p->has_oauth)
        init_write_oauth(p, out);
}
