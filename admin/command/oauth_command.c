/* `petrel oauth login|status|forget`. Works on the files of the spool, so that it does
 * not matter whether a daemon runs: that reads a file again when it has changed. */
#include "admin/command/oauth_command.h"

#include "admin/command/oauth_login.h"
#include "admin/command/offline.h"
#include "admin/view/control_client.h"
#include "base/format_time.h"
#include "base/json_field.h"
#include "admin/view/listing.h"
#include "admin/settings/complaint.h"
#include "base/disk/disk.h"
#include "smtp/oauth/oauth_file.h"
#include "base/loop/loop.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sysexits.h>

static const char program[] = "petrel oauth";

static int
oauth_usage(void)
{
    fputs("usage: petrel oauth login [--browser] HOST[:PORT] USER\n"
          "       petrel oauth status [--json]\n"
          "       petrel oauth forget HOST[:PORT] USER\n",
          stderr);
    return EX_USAGE;
}

/* Accounts that differ in the port alone share a login unless their clients differ. */
static const struct oauth_account *
oauth_find_account(const struct accounts *accounts, struct text place, const char *user)
{
    size_t colon = text_find(place, ':');
    uint64_t port = 0;
    bool named = colon != TEXT_NONE &&
                 text_number(text_after(place, colon + 1), UINT16_MAX, &port);
    struct text host = named ? text_before(place, colon) : place;
    const struct oauth_account *first = NULL;
    for (size_t i = 0; i < accounts->count; i++) {
        const struct oauth_account *a = &accounts->list[i];
        if (!text_equal_nocase(host, text_from(a->host)) || strcmp(user, a->user) != 0)
            continue;
        if (a->port == port)
            return a;
        if (first == NULL && (!named || a->port == 0))
            first = a;
    }
    return first;
}

/* --- status ------------------------------------------------------------------------ */

enum oauth_stage { OAUTH_STAGE_READY, OAUTH_STAGE_DUE, OAUTH_STAGE_NONE };

/* DUE: the daemon asks for a token when it needs one. A first refresh token in a file
 * counts as a login. */
static enum oauth_stage
oauth_find_stage(const struct oauth_account *a, const struct oauth_state *state,
                 int64_t now_ms)
{
    int64_t left_ms = state->expires_ms - now_ms;
    if (state->access.length > 0 && left_ms > 0 &&
        left_ms <= (int64_t)OAUTH_LIFETIME_MAX_S * 1000)
        return OAUTH_STAGE_READY;
    return state->refresh.length > 0 || a->grant == OAUTH_CLIENT ||
                   a->refresh[0] != '\0'
               ? OAUTH_STAGE_DUE
               : OAUTH_STAGE_NONE;
}

static void
oauth_print_account(const struct oauth_account *a, const struct oauth_state *state,
                    enum oauth_stage stage, int64_t now_ms)
{
    char time[FORMAT_TIME_MAX], port[8] = "";
    if (a->port > 0)
        snprintf(port, sizeof(port), ":%u", (unsigned)a->port);
    printf("%s at %s%s: ", a->user, a->host, port);
    switch (stage) {
    case OAUTH_STAGE_READY:
        printf("token until %s\n", format_time_until(state->expires_ms, now_ms, time));
        break;
    case OAUTH_STAGE_DUE:
        puts("no valid token; the daemon asks for one");
        break;
    case OAUTH_STAGE_NONE:
        printf("nobody has logged in; run: petrel oauth login %s%s %s\n", a->host, port,
               a->user);
        break;
    }
}

static json_t *
oauth_list_account(const struct oauth_account *a, const struct oauth_state *state,
                   enum oauth_stage stage)
{
    static const char *const stages[] = {[OAUTH_STAGE_READY] = "ready",
                                         [OAUTH_STAGE_DUE] = "due",
                                         [OAUTH_STAGE_NONE] = "none"};
    json_t *account = json_pack(
        "{s:o,s:i,s:o,s:s,s:s}", "host", listing_text(text_from(a->host)), "port",
        (int)a->port, "user", listing_text(text_from(a->user)), "grant",
        a->grant == OAUTH_CLIENT ? "client" : "refresh", "state", stages[stage]);
    if (stage == OAUTH_STAGE_READY)
        json_object_set_new(account, "until_ms", json_integer(state->expires_ms));
    if (state->updated_ms > 0)
        json_object_set_new(account, "updated_ms", json_integer(state->updated_ms));
    return account;
}

/* The state of one account: printed, or added to list. */
static int
oauth_show_account(struct disk *spool, const struct oauth_account *a, int64_t now_ms,
                   json_t *list)
{
    char path[OAUTH_FILE_PATH_MAX];
    struct oauth_state state;
    oauth_state_init(&state);
    oauth_file_path(a, path);
    int code = 0, result = oauth_file_read(spool, path, a, &state, NULL);
    if (result < 0 && result != -ENOENT)
        code = complaint_say(program, result == -EACCES ? EX_NOPERM : EX_IOERR, path,
                             result == -EBADMSG ? "damaged, or of another account"
                                                : strerror(-result));
    enum oauth_stage stage = oauth_find_stage(a, &state, now_ms);
    if (list != NULL)
        json_array_append_new(list, oauth_list_account(a, &state, stage));
    else
        oauth_print_account(a, &state, stage, now_ms);
    oauth_state_free(&state);
    return code;
}

static int
oauth_status(struct disk *spool, const struct accounts *accounts, bool json)
{
    struct loop *loop = loop_new();
    json_t *list = json ? json_array() : NULL;
    int code = 0;
    for (size_t i = 0; i < accounts->count; i++) {
        int one =
            oauth_show_account(spool, &accounts->list[i], loop_now_ms(loop), list);
        code = code != 0 ? code : one;
    }
    if (list != NULL) {
        json_t *all = json_pack("{s:o}", "accounts", list);
        json_field_print_line(all);
        json_decref(all);
    } else if (accounts->count == 0) {
        puts("no accounts: oauth is not set");
    }
    loop_free(&loop);
    return code;
}

/* --- forget ------------------------------------------------------------------------ */

static int
oauth_forget_account(struct disk *spool, const struct oauth_account *a)
{
    char path[OAUTH_FILE_PATH_MAX];
    oauth_file_path(a, path);
    /* The lock would make the directory. */
    int lock =
        oauth_file_is_there(spool, path) ? oauth_file_lock(spool, path) : -ENOENT;
    int result = lock;
    if (lock >= 0) {
        result = oauth_file_remove(spool, path);
        disk_close_file(spool, lock);
    }
    if (result == -ENOENT)
        return complaint_say(program, EX_DATAERR, "nobody has logged in as", a->user);
    if (result == -EWOULDBLOCK)
        return complaint_say(program, EX_TEMPFAIL,
                             "the daemon is asking for a token: try again", "");
    if (result < 0)
        return complaint_say(program, EX_IOERR, path, strerror(-result));
    printf("The login of %s at %s is forgotten here. End it at the provider, too: it "
           "is\nvalid there.\n",
           a->user, a->host);
    return 0;
}

/* Changes of a command count for a running daemon immediately. */
static void
oauth_tell_daemon(const struct options *options)
{
    char error[512];
    struct loop *loop = loop_new();
    struct control_client *client =
        control_client_new(loop, options->control, error, sizeof(error));
    json_t *answer =
        client != NULL
            ? control_client_question(client, json_pack("{s:s}", "command", "tokens"))
            : NULL;
    if (client != NULL && !json_is_true(json_object_get(answer, "ok")))
        fputs("petrel oauth: the running daemon did not answer: petrel reload, or "
              "SIGHUP, tells it\n",
              stderr);
    json_decref(answer);
    control_client_free(&client);
    loop_free(&loop);
}

/* --- public ------------------------------------------------------------------------ */

struct oauth_words {
    const char *verb, *host, *user;
    bool browser, json;
};

static bool
oauth_read_words(int count, char **arguments, struct oauth_words *out)
{
    *out = (struct oauth_words){.verb = count > 0 ? arguments[0] : ""};
    bool login = strcmp(out->verb, "login") == 0;
    bool status = strcmp(out->verb, "status") == 0;
    int names = 0;
    for (int i = 1; i < count; i++) {
        if (login && strcmp(arguments[i], "--browser") == 0)
            out->browser = true;
        else if (status && strcmp(arguments[i], "--json") == 0)
            out->json = true;
        else if (arguments[i][0] == '-' || status || names == 2)
            return false;
        else
            *(names++ == 0 ? &out->host : &out->user) = arguments[i];
    }
    return status || ((login || strcmp(out->verb, "forget") == 0) && names == 2);
}

bool
oauth_command_asks(int count, char **arguments)
{
    struct oauth_words words;
    return oauth_read_words(count, arguments, &words) && words.verb[0] == 'l';
}

static int
oauth_act(const struct oauth_words *words, const struct options *options,
          const struct oauth_account *account, struct disk *spool,
          struct tls_client *anchors)
{
    if (words->verb[0] == 'f')
        return oauth_forget_account(spool, account);
    return oauth_login_run(&(struct oauth_login){.account = account,
                                                 .dns_servers = options->dns_servers,
                                                 .spool = spool,
                                                 .anchors = anchors,
                                                 .browser = words->browser});
}

int
oauth_command(int count, char **arguments, const struct options *options,
              const struct accounts *accounts, struct tls_client *anchors,
              oauth_command_try *try, void *context)
{
    struct oauth_words words;
    const struct oauth_account *account = NULL;
    struct disk *spool;
    char error[512];
    if (!oauth_read_words(count, arguments, &words))
        return oauth_usage();
    if (words.host != NULL)
        account = oauth_find_account(accounts, text_from(words.host), words.user);
    if (words.host != NULL && account == NULL)
        return complaint_say(program, EX_DATAERR,
                             "oauth has no account of that user at", words.host);
    int code = offline_become_owner(options->spool, error, sizeof(error));
    if (code != 0)
        return complaint_say(program, code, error, "");
    int result = disk_open(&spool, options->spool, false);
    if (result < 0)
        return complaint_say(program, EX_UNAVAILABLE, options->spool,
                             strerror(-result));
    code = account != NULL ? oauth_act(&words, options, account, spool, anchors)
                           : oauth_status(spool, accounts, words.json);
    if (code == 0 && account != NULL)
        oauth_tell_daemon(options);
    if (code == 0 && words.verb[0] == 'l')
        code = try(context, account, spool);
    disk_close(&spool);
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == 0)
        code = EX_IOERR;
    return code;
}
