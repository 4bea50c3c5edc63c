/* The secrets of SRS: those of the setting, and one that is made once in the spool. Each
 * call of the disk fails once, and dies once: there is no secret, or a whole one, and none
 * that has signed is ever replaced. */
/* link: t/sim/disk.c t/sim/disk_world.c t/sim/loop.c */
#include "admin/settings/srs_secret.h"

#include "t/sim/sim_disk.h"
#include "t/support/tap.h"

#include <errno.h>
#include <string.h>

#define NOW (INT64_C(20000) * 24 * 3600 * 1000)

static const char FILE_PATH[] = "lock/srs";
static const uint64_t first[SRS_SECRET_RANDOM] = {1, 2, 3, 4, 5};
static const uint64_t second[SRS_SECRET_RANDOM] = {6, 7, 8, 9, 10};

static struct disk *disk;
static struct route_table *routes;
static struct options options;

static void
srs_home(void)
{
    sim_disk_reset();
    if (disk_open(&disk, "/spool", true) < 0 ||
        disk_make_directory(disk, "lock", 0700) < 0)
        abort();
    sim_disk_count_anew();
}

static void
put(const char *content)
{
    int file = disk_create(disk, FILE_PATH, 0600);
    if (file < 0 || disk_write(disk, file, text_from(content)) < 0)
        abort();
    disk_close_file(disk, file);
}

/* The sender that it makes; "blind", or "none". */
static const char *
sender_of(const uint64_t random[SRS_SECRET_RANDOM], bool wanted, int want)
{
    static char out[SRS_ADDRESS_MAX];
    int error = 77;
    struct srs *s = srs_secret_use(&options, routes, disk, random, wanted, &error);
    if (want <= 0)
        is_number(error, want, "the error");
    if (s == NULL)
        snprintf(out, sizeof(out), "none");
    else if (srs_is_blind(s))
        snprintf(out, sizeof(out), "blind");
    else if (!srs_forward(s, TEXT("ann@far.test"), NOW, out))
        abort();
    srs_free(&s);
    return out;
}

TEST(file)
{
    char made[SRS_ADDRESS_MAX];
    srs_home();
    is_string(sender_of(first, false, 0), "none", "nothing is forwarded");
    is_number(sim_disk_count(""), 0, "so none is made");
    snprintf(made, sizeof(made), "%s", sender_of(first, true, 0));
    ok_named(text_starts(text_from(made), TEXT("SRS0=")), made);
    ok(text_ends_nocase(text_from(made), TEXT("=ann@d.test")));
    is_number(sim_disk_count(""), 1, "one file, no draft of it");
    is_number(sim_disk_content("/spool/lock/srs").length, 32, "of 32 octets");
    is_string(sender_of(second, true, 0), made, "another start uses it");
    is_string(sender_of(second, false, 0), made, "also when nothing is forwarded");
    sim_disk_power_cut();
    disk_close(&disk);
    if (disk_open(&disk, "/spool", true) < 0)
        abort();
    is_string(sender_of(second, true, 0), made, "and after a power cut");
    disk_unlink(disk, FILE_PATH);
    ok(strcmp(sender_of(second, true, 0), made) != 0);
    options.srs = false;
    is_string(sender_of(first, true, 0), "none", "srs = no");
    options.srs = true;
    disk_close(&disk);
}

TEST(damage)
{
    char why[SRS_SECRET_WHY_MAX];
    srs_home();
    put("");
    is_string(sender_of(first, true, -EILSEQ), "blind", "an empty file");
    is_string(sender_of(first, false, -EILSEQ), "blind",
              "even if nothing is forwarded");
    disk_unlink(disk, FILE_PATH);
    put("0123456789abcdef0123456789abcde");
    is_string(sender_of(first, true, -EILSEQ), "blind", "31 octets");
    is_number(sim_disk_content("/spool/lock/srs").length, 31, "which stay as they are");
    disk_unlink(disk, FILE_PATH);
    put("0123456789abcdef0123456789abcdef");
    ok(strcmp(sender_of(first, true, 0), "blind") != 0);
    sim_disk_wear("/spool/lock/srs", 0);
    is_string(sender_of(first, true, -EIO), "blind", "a bad sector");
    srs_secret_why(-EIO, why);
    ok_named(strncmp(why, "lock/srs: ", 10) == 0 && strcmp(why + 10, strerror(EIO)) == 0, "why, in the words of the C library");
    srs_secret_why(-EILSEQ, why);
    is_string(why, "lock/srs: damaged; remove it to have a new one", "why");
    disk_close(&disk);
}

/* Another slice links its secret between our question and our link. */
TEST(race)
{
    char theirs[SRS_ADDRESS_MAX];
    srs_home();
    snprintf(theirs, sizeof(theirs), "%s", sender_of(second, true, 0));
    struct text secret = sim_disk_content("/spool/lock/srs");
    char kept[64];
    snprintf(kept, sizeof(kept), "%.*s", TEXT_ARGS(secret));
    memcpy(kept, secret.at, 32);
    disk_unlink(disk, FILE_PATH);
    /* Our first call is the open of the file, which fails as if it were not there. */
    int file = disk_create(disk, FILE_PATH, 0600);
    if (file < 0 || disk_write(disk, file, text_of(kept, 32)) < 0)
        abort();
    disk_close_file(disk, file);
    sim_disk_count_anew();
    sim_disk_fail_at(1, ENOENT);
    is_string(sender_of(first, true, 0), theirs, "the first that links it wins");
    sim_disk_fail_at(0, 0);
    is_number(sim_disk_count(""), 1, "and ours is gone");
    disk_close(&disk);
}

static void
put_at(const char *path, const char *content)
{
    int file = disk_create(disk, path, 0600);
    if (file < 0 || disk_write(disk, file, text_from(content)) < 0)
        abort();
    disk_close_file(disk, file);
}

/* Drafts go as soon as there is a secret, and nothing else does. */
TEST(drafts)
{
    srs_home();
    put_at("lock/srs.00000000000000aa", "half");
    put_at("lock/srs.old", "an operator's");
    put_at("lock/srs.00000000000000aab", "too long");
    put_at("lock/sites", "another's");
    is_string(sender_of(first, false, 0), "none", "nothing is forwarded");
    is_number(sim_disk_count(""), 4, "another slice may be about to link its draft");
    ok(text_starts(text_from(sender_of(first, true, 0)), TEXT("SRS0=")));
    is_number(sim_disk_count(""), 4, "the secret in place of the draft");
    ok(sim_disk_content("/spool/lock/srs.00000000000000aa").at == NULL);
    put_at("lock/srs.00000000000000bb", "half");
    (void)sender_of(second, false, 0);
    is_number(sim_disk_count(""), 4, "the next start removes it, too");
    put_at("lock/srs.00000000000000cc", "half");
    disk_unlink(disk, FILE_PATH);
    put("cut off");
    is_string(sender_of(second, true, -EILSEQ), "blind", "while it is damaged");
    is_number(sim_disk_count(""), 5, "nothing is removed");
    disk_close(&disk);
}

/* Another slice has linked its secret, and removed our draft, before our link. */
TEST(lost_draft)
{
    bool seen = false, over = false;
    for (uint64_t call = 1; !over; call++) {
        srs_home();
        sim_disk_fail_at(call, ENOENT);
        const char *got = sender_of(first, true, 1);
        over = !sim_disk_has_failed();
        sim_disk_fail_at(0, 0);
        seen = seen || strcmp(got, "blind") == 0;
        const char *again = sender_of(second, true, 1);
        ok(text_starts(text_from(again), TEXT("SRS0=")));
        is_number(sim_disk_count(""), 1, "the next attempt makes one, and nothing is left");
        disk_close(&disk);
    }
    ok_named(seen, "it is no secret until then");
}

static unsigned
secrets_there(void)
{
    struct text content = sim_disk_content("/spool/lock/srs");
    return content.at == NULL ? 0 : content.length == 32 ? 1 : 99;
}

/* The n-th call fails once. */
static void
test_faults(int error)
{
    bool good = true, over = false;
    unsigned calls = 0;
    for (uint64_t call = 1; !over; call++, calls++) {
        char made[SRS_ADDRESS_MAX];
        srs_home();
        sim_disk_fail_at(call, error);
        snprintf(made, sizeof(made), "%s", sender_of(first, true, 1));
        over = !sim_disk_has_failed();
        sim_disk_fail_at(0, 0);
        good = good && secrets_there() <= 1;
        const char *again = sender_of(second, true, 1);
        good = good && text_starts(text_from(again), TEXT("SRS0=")) &&
               secrets_there() == 1;
        /* A secret that has signed stays. */
        good = good && (strcmp(made, "blind") == 0 || strcmp(made, again) == 0);
        is_number(sim_disk_open_files(), 0, "nothing is open");
        disk_close(&disk);
    }
    ok_named(good, "no secret, or a whole one; what has signed is kept");
    ok_named(calls > 6, "each call has failed");
}

/* SIGKILL, or the loss of power, at the n-th call. */
static void
test_deaths(bool power)
{
    bool good = true, over = false, cleaned = true;
    for (uint64_t call = 1; !over; call++) {
        char made[SRS_ADDRESS_MAX];
        srs_home();
        sim_disk_die_at(call);
        snprintf(made, sizeof(made), "%s", sender_of(first, true, 1));
        over = !sim_disk_is_dead();
        disk_close(&disk);
        if (power)
            sim_disk_power_cut();
        else
            sim_disk_restart();
        good = good && secrets_there() <= 1;
        if (disk_open(&disk, "/spool", true) < 0)
            abort();
        const char *again = sender_of(second, true, 1);
        good = good && text_starts(text_from(again), TEXT("SRS0="));
        /* A dead process has told nobody. */
        good = good && (strcmp(made, "blind") == 0 || strcmp(made, again) == 0);
        cleaned = cleaned && sim_disk_count("") == 1;
        disk_close(&disk);
    }
    ok_named(cleaned, "the draft of the dead one is removed");
    ok_named(good, power ? "after a power cut" : "after SIGKILL");
}

static void
test_setting(void)
{
    char one[] = "0123456789abcdef", two[] = "fedcba9876543210, 0123456789abcdef";
    char domain[] = "srs.test", old[SRS_ADDRESS_MAX], back[SRS_ADDRESS_MAX];
    int error;
    srs_home();
    options.srs_secret = one;
    snprintf(old, sizeof(old), "%s", sender_of(first, true, 0));
    is_number(sim_disk_calls(), 0, "of the setting: no file is touched");
    options.srs_secret = two;
    struct srs *s = srs_secret_use(&options, routes, disk, first, true, &error);
    ok(srs_back(s, text_from(old), NOW, back) == SRS_GOOD);
    is_string(back, "ann@far.test", "rotation: the old one verifies");
    srs_free(&s);
    ok(strcmp(sender_of(first, true, 0), old) != 0);
    options.srs_domain = domain;
    ok(text_ends_nocase(text_from(sender_of(first, true, 0)), TEXT("@srs.test")));
    options.srs_secret = options.srs_domain = NULL;
    struct route_table *with_domain = routes;
    routes = route_new(&(struct route_settings){.routes = TEXT("* mx")}, NULL);
    is_string(sender_of(first, true, 0), "none", "no local domain: nothing leads back");
    route_free(&routes);
    routes = with_domain;
    disk_close(&disk);
}

static void
test_tags(void)
{
    char address[] = "bounce@shop.test", one[] = "0123456789abcdef", tag[ADDRESS_MAX + 1];
    struct id id = {.time_ms = 1795230308000, .hash = 1};
    int error = 77;
    srs_home();
    ok(srs_secret_tags(&options, disk, first, &error) == NULL && error == 0);
    options.bounces = address;
    options.srs = false;
    struct verp *v = srs_secret_tags(&options, disk, first, &error);
    ok_named(v != NULL && error == 0 && verp_make(v, id, TEXT("joe@b.test"), NOW, tag),
             "a secret is made, also without SRS");
    verp_free(&v);
    v = srs_secret_tags(&options, disk, first, &error);
    struct address parsed;
    struct verp_tag read;
    ok(address_parse(text_from(tag), &parsed) && verp_read(v, &parsed, NOW, &read) == VERP_GOOD);
    verp_free(&v);
    options.srs_secret = one;
    v = srs_secret_tags(&options, disk, first, &error);
    ok_named(verp_read(v, &parsed, NOW, &read) == VERP_FORGED, "that of the setting counts");
    verp_free(&v);
    options.bounces = options.srs_secret = NULL;
    options.srs = true;
    disk_close(&disk);
}

static void
complains(char *secret, char *domain, const char *want)
{
    FIXTURE(buffer, errors, buffer_init, buffer_free, 4096);
    options.srs_secret = secret;
    options.srs_domain = domain;
    srs_secret_check(&options, routes, &errors);
    is_text(buffer_text(&errors), text_from(want), "errors");
    options.srs_secret = options.srs_domain = NULL;
}

static void
test_check(void)
{
    char good[] = "0123456789abcdef, fedcba9876543210", bad[] = "0123456789abcde";
    char many[400] = "", domain[] = "srs.test", wrong[] = "a b";
    complains(NULL, NULL, "");
    complains(good, domain, "");
    complains(bad, NULL, "srs_secret: has fewer than 16 characters\n");
    for (int i = 0; i < 17; i++)
        strcat(many, "0123456789abcdef ");
    complains(many, NULL, "srs_secret: more than 16 secrets\n");
    complains(NULL, wrong, "srs_domain: 'a b': not a domain\n");
    options.bounces = wrong;
    complains(NULL, NULL,
              "bounces: 'a b': say LOCAL@DOMAIN, LOCAL of letters, digits, '.', '-', '_', "
              "at most 27\n");
    options.bounces = NULL;
    options.transport.verp = 1;
    complains(NULL, NULL, "verp: needs `bounces`, the address to which reports come back\n");
    options.transport.verp = 0;
}

int
main(void)
{
    options = (struct options){.srs = true};
    routes =
        route_new(&(struct route_settings){.routes = TEXT("* mx"),
                                           .local_domains = TEXT("d.test, e.test")},
                  NULL);
    tap_tests("");
    test_faults(EIO);
    test_faults(ENOSPC);
    test_faults(EMFILE);
    test_deaths(false);
    test_deaths(true);
    test_setting();
    test_tags();
    test_check();
    route_free(&routes);
    return done();
}
