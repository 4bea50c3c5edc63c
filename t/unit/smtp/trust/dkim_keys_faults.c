/* Reading dkim_keys while any system call fails once: all keys, or none and a line that
 * names what could not be read. With a part of them mail would leave unsigned. */
/* link: t/sim/disk.c */
/* link: t/sim/disk_world.c */
#include "smtp/trust/dkim_keys.h"

#include "base/disk/disk.h"
#include "t/sim/sim_disk.h"
#include "t/support/dkim_kit.h"
#include "t/support/must.h"
#include "t/support/tap.h"

#include <errno.h>
#include <string.h>

enum { KEYS = 3 };

static void
make_keys(void)
{
    const char *why;
    char name[100];
    struct disk *disk;
    struct sign_random *random = sign_random_new();
    sim_disk_reset();
    must(disk_open(&disk, "/keys", true) == 0);
    for (int i = 0; i < KEYS; i++) {
        FIXTURE(buffer, pem, buffer_init, buffer_free, SIGN_FILE_MAX);
        must(sign_key_make(random, SIGN_RSA, 1024, &pem, &why));
        snprintf(name, sizeof(name), "s._domainkey.d%d.test.pem", i);
        int file = disk_create(disk, name, 0600);
        must(file >= 0 && disk_write(disk, file, buffer_text(&pem)) == 0);
        disk_close_file(disk, file);
    }
    disk_close(&disk);
    sign_random_free(&random);
}

/* False: something is wrong. */
static bool
survives(const char *setting, uint64_t call, bool *reached)
{
    struct buffer errors;
    buffer_init(&errors, 4096);
    sim_disk_restart();
    sim_disk_fail_at(call, call % 2 ? EIO : EMFILE);
    struct dkim_keys *keys = dkim_kit_read(text_from(setting), &errors);
    *reached = sim_disk_has_failed();
    bool good =
        keys != NULL
            ? keys->count == KEYS && errors.length == 0
            : *reached &&
                  text_starts(buffer_text(&errors), TEXT("dkim_keys: cannot read ")) &&
                  memmem(errors.at, errors.length, "/keys", 5) != NULL &&
                  text_ends_nocase(buffer_text(&errors), TEXT("\n"));
    good = good && sim_disk_open_files() == 0;
    dkim_keys_free(&keys);
    buffer_free(&errors);
    return good;
}

int
main(void)
{
    static const char *const settings[] = {"/keys",
                                           "d0.test s /keys/s._domainkey.d0.test.pem\n"
                                           "d1.test s /keys/s._domainkey.d1.test.pem\n"
                                           "d2.test s /keys/s._domainkey.d2.test.pem"};
    make_keys();
    for (size_t i = 0; i < 2; i++) {
        bool reached = true;
        unsigned wrong = 0;
        uint64_t call = 1;
        for (; reached && call < 100; call++)
            wrong += !survives(settings[i], call, &reached);
        is_number(wrong, 0, i == 0 ? "a directory" : "a table");
        ok_named(call > KEYS + 1 && !reached, "  at each call");
    }
    return done();
}
