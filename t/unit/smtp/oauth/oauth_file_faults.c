/* `petrel oauth` and a daemon write the file of an account, and any system call fails once,
 * or the process or the power ends there: the file is the old one or the new one, a
 * reported write stays done, and its rests do not stop the next command. */
/* link: t/sim/disk.c */
/* link: t/sim/disk_world.c */
#include "smtp/oauth/oauth_file.h"

#include "base/disk/disk.h"
#include "t/sim/sim_disk.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <errno.h>
#include <string.h>

enum fault { FAULT_ERROR, FAULT_KILL, FAULT_POWER, FAULTS };
enum found { FOUND_NONE, FOUND_OLD, FOUND_NEW, FOUND_ODD };

static struct oauth_account account;
static char path[OAUTH_FILE_PATH_MAX];

static int
write_state(struct disk *spool, const char *refresh)
{
    struct oauth_state state;
    oauth_state_init(&state);
    must(buffer_add(&state.refresh, text_from(refresh)));
    int result = oauth_file_write(spool, path, &account, &state);
    oauth_state_free(&state);
    return result;
}

static enum found
find_state(struct disk *spool)
{
    struct oauth_state state;
    oauth_state_init(&state);
    int result = oauth_file_read(spool, path, &account, &state, NULL);
    struct text refresh = buffer_text(&state.refresh);
    enum found found = result == -ENOENT                    ? FOUND_NONE
                       : result != 0                        ? FOUND_ODD
                       : text_equal(refresh, TEXT("r-old")) ? FOUND_OLD
                       : text_equal(refresh, TEXT("r-new")) ? FOUND_NEW
                                                            : FOUND_ODD;
    oauth_state_free(&state);
    return found;
}

/* --- The commands ------------------------------------------------------------------- */

/* Each with the lock, as oauth_login.c, oauth_command.c and tokens.c have them. */
static int
with_lock(struct disk *spool, int (*act)(struct disk *spool))
{
    int lock = oauth_file_lock(spool, path);
    if (lock < 0)
        return lock;
    int result = act(spool);
    disk_close_file(spool, lock);
    return result;
}

static int
act_write(struct disk *spool)
{
    return write_state(spool, "r-new");
}

static int
act_remove(struct disk *spool)
{
    return oauth_file_remove(spool, path);
}

static int
act_settle(struct disk *spool)
{
    int result = oauth_file_settle(spool, path, &account);
    return result > 0 ? 0 : result;
}

static const struct command {
    const char *name;
    int (*act)(struct disk *spool);
    bool has_old, has_rest; /* before: a file; a whole one that a crash has left */
    enum found done;        /* afterwards, when it has succeeded */
} commands[] = {
    {"a first login",            act_write,  false, false, FOUND_NEW },
    {"a login",                  act_write,  true,  false, FOUND_NEW },
    {"a login behind a crash",   act_write,  true,  true,  FOUND_NEW },
    {"forget",                   act_remove, true,  false, FOUND_NONE},
    {"forget behind a crash",    act_remove, true,  true,  FOUND_NONE},
    {"a crash is settled",       act_settle, true,  true,  FOUND_NEW },
    {"a first crash is settled", act_settle, false, true,  FOUND_NEW },
};

/* Durable: what was there before. */
static void
make_world(struct disk **spool, const struct command *c)
{
    char fresh[OAUTH_FILE_PATH_MAX + 8];
    sim_disk_reset();
    must(disk_open(spool, "/spool", true) == 0);
    snprintf(fresh, sizeof(fresh), "%s.new", path);
    if (c->has_rest) {
        must(write_state(*spool, "r-new") == 0 &&
             disk_rename(*spool, path, fresh) == 0);
        must(disk_sync_directory(*spool, "oauth") == 0);
    }
    if (c->has_old) {
        /* oauth_file_write() would remove the rest. */
        char kept[sizeof(fresh) + 8];
        snprintf(kept, sizeof(kept), "%s.kept", path);
        must(!c->has_rest || disk_rename(*spool, fresh, kept) == 0);
        must(write_state(*spool, "r-old") == 0);
        must(!c->has_rest || disk_rename(*spool, kept, fresh) == 0);
        must(disk_sync_directory(*spool, "oauth") == 0);
    }
}

/* A state in parts, or none where there was one, would be a lost login. */
static bool
is_allowed(const struct command *c, enum found found, int result)
{
    if (result == 0)
        return found == c->done;
    enum found before = c->has_old ? FOUND_OLD : FOUND_NONE;
    return found == before || found == c->done;
}

/* False: something is wrong. */
static bool
survives(const struct command *c, uint64_t call, enum fault fault, bool *reached)
{
    struct disk *spool;
    make_world(&spool, c);
    sim_disk_count_anew();
    if (fault == FAULT_ERROR)
        sim_disk_fail_at(call, call % 2 ? EIO : ENOSPC);
    else
        sim_disk_die_at(call);
    int result = with_lock(spool, c->act);
    *reached = fault == FAULT_ERROR ? sim_disk_has_failed() : sim_disk_is_dead();
    bool is_odd = result != 0 && !*reached;
    disk_close(&spool);
    if (fault == FAULT_POWER)
        sim_disk_power_cut();
    else
        sim_disk_restart();
    if (disk_open(&spool, "/spool", true) != 0)
        return false;
    bool good = !is_odd && is_allowed(c, find_state(spool), result);

    /* Nobody else has the lock, and the next one succeeds. */
    good = good && (with_lock(spool, c->act) == 0 || c->act == act_remove) &&
           (find_state(spool) == c->done ||
            (c->act == act_settle && find_state(spool) != FOUND_ODD));
    disk_close(&spool);
    return good && sim_disk_open_files() == 0;
}

int
main(void)
{
    static const char *const faults[] = {"an error", "a kill", "a power cut"};
    char why[OAUTH_REASON_MAX], name[100];
    must(
        oauth_parse_account(TEXT("smtp.gmail.com joe google client=c"), &account, why));
    oauth_file_path(&account, path);
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        for (int fault = 0; fault < FAULTS; fault++) {
            bool reached = true;
            unsigned wrong = 0;
            uint64_t call = 1;
            for (; reached && call < 100; call++)
                wrong += !survives(&commands[i], call, (enum fault)fault, &reached);
            snprintf(name, sizeof(name), "%s: %s", commands[i].name, faults[fault]);
            is_number(wrong, 0, name);
            ok_named(call > 6 && !reached, "  at each call");
        }
    return done();
}
