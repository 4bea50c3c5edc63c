/* A crash has left KEY.new, which may have the only refresh token that is still valid. No
 * system call that fails once, while the daemon completes it, may cost that token, or lead to
 * a request with the one that it replaces: providers end a login that shows an old one. */
/* link: t/sim/disk.c */
/* link: t/sim/disk_world.c */
/* link: t/sim/loop.c */
#include "smtp/oauth/tokens.h"

#include "base/disk/disk.h"
#include "base/http/http_call.h"
#include "smtp/oauth/oauth_file.h"
#include "base/log/log.h"
#include "t/sim/sim.h"
#include "t/sim/sim_disk.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* --- In place of base/http/http_call.c: a provider that keeps its mouth shut ---------- */

struct http_call {
    char body[600];
};
static struct http_call call;
static size_t started;

struct http_call *
http_call_start(struct http_caller *caller, struct text url,
                const struct http_request *request,
                const struct http_call_options *options, http_called *called,
                void *context)
{
    (void)caller, (void)url, (void)options, (void)called, (void)context;
    text_copy(call.body, sizeof(call.body), request->body);
    started++;
    return &call;
}

void
http_call_cancel(struct http_call **at)
{
    *at = NULL;
}

/* --- The daemon ----------------------------------------------------------------------- */

static struct oauth_account account;
static char path[OAUTH_FILE_PATH_MAX], fresh[OAUTH_FILE_PATH_MAX + 8];

static void
write_state(struct disk *spool, const char *refresh)
{
    FIXTURE(oauth_state, state, oauth_state_init, oauth_state_free);
    must(buffer_add(&state.refresh, text_from(refresh)));
    must(oauth_file_write(spool, path, &account, &state) == 0);
}

/* False: an old token was sent, or the new one is lost. */
static bool
survives(uint64_t fail, bool *reached)
{
    struct disk *spool;
    started = 0;
    sim_disk_reset();
    struct loop *loop = sim_loop_new(1);
    must(disk_open(&spool, "/spool", true) == 0);
    write_state(spool, "r-new");
    must(disk_rename(spool, path, "oauth/kept") == 0);
    write_state(spool, "r-old");
    must(disk_rename(spool, "oauth/kept", fresh) == 0);
    sim_disk_count_anew();
    sim_disk_fail_at(fail, EIO);
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    struct tokens *tokens =
        tokens_new(&(struct tokens_settings){.loop = loop, .log = log, .spool = spool});
    tokens_set(tokens, &account, 1);
    loop_turn(loop, 0);
    *reached = sim_disk_has_failed();
    bool good = started == 0 || strstr(call.body, "r-new") != NULL;
    if (started == 0) { /* it waits, and asks again */
        struct text token;
        const char *why = "";
        enum tokens_status status = tokens_find(tokens, text_from("smtp.x.test"), 587,
                                                text_from("u@x.test"), &token, &why);
        good = *reached && status == TOKENS_FAILED && why[0] != '\0';
        sim_loop_advance(loop, 60 * 1000);
        good = good && started == 1 && strstr(call.body, "r-new") != NULL;
    }
    tokens_free(&tokens);
    loop_turn(loop, 0);
    disk_close(&spool);
    log_free(&log);
    loop_free(&loop);
    return good;
}

int
main(void)
{
    char why[OAUTH_REASON_MAX], key[OAUTH_KEY_SIZE];
    FILE *log = tmpfile();
    if (log == NULL || dup2(fileno(log), STDERR_FILENO) < 0)
        return 1;
    must(oauth_parse_account(
        TEXT("smtp.x.test u@x.test custom client=c token=https://x.test/t"), &account,
        why));
    oauth_account_key(&account, key);
    oauth_file_path(&account, path);
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    bool reached = true;
    uint64_t call_number = 1;
    for (; reached && call_number < 100; call_number++)
        if (!survives(call_number, &reached))
            printf("# call %d\n", (int)call_number),
                ok_named(false, "the token survives an error");
    ok_named(call_number > 10 && !reached, "each call has failed once");
    fclose(log);
    return done();
}
