/* Files with secrets that everybody can read are told, others not. */
#include "admin/settings/file_modes.h"

#include "base/log/log_internal.h"
#include "t/support/tap.h"

#include <sys/stat.h>
#include <unistd.h>

static struct settings *
no_settings(void)
{
    static const struct setting rows[] = {{.key = NULL}};
    return settings_new(rows, "PETREL", NULL);
}

static void
warns(const char *path, mode_t mode, bool want, const char *name)
{
    char written[300];
    struct options options = {.auth_passwords = written};
    struct buffer lines;
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    buffer_init(&lines, 65536);
    log_capture(log, &lines);
    snprintf(written, sizeof(written), "%s", path);
    if (chmod(path, mode) != 0)
        abort();
    struct settings *settings = no_settings();
    file_modes_warn(&options, settings, log);
    settings_free(&settings);
    if (!buffer_add_byte(&lines, '\0'))
        abort();
    bool told = strstr(lines.at, "can be read by all users: chmod 600") != NULL;
    ok_named(told == want, name);
    ok_named(!told || strstr(lines.at, path) != NULL, "its path");
    log_free(&log);
    buffer_free(&lines);
}

/* As another user, when root runs this: nobody keeps a file from root. */
static void
foresees(char *file, mode_t mode, bool want, const char *name)
{
    struct options options = {.server.tls_key = text_from(file)};
    struct settings *none = settings_new(options_rows, "PETREL", &(struct options){0});
    struct buffer lines;
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    buffer_init(&lines, 65536);
    log_capture(log, &lines);
    if (chmod(file, mode) != 0 || (geteuid() == 0 && seteuid(65534) != 0))
        abort();
    file_modes_foresee(&options, none, log);
    if ((getuid() == 0 && seteuid(0) != 0) || !buffer_add_byte(&lines, '\0'))
        abort();
    ok_named((strstr(lines.at, "cannot be read by `user`") != NULL) == want, name);
    ok_named(!want || strstr(lines.at, file) != NULL, "its path");
    settings_free(&none);
    log_free(&log);
    buffer_free(&lines);
}

static bool
foresees_keys(char *setting, const char *path)
{
    struct options options = {.dkim_keys = setting};
    struct settings *none = settings_new(options_rows, "PETREL", &(struct options){0});
    struct buffer lines;
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    buffer_init(&lines, 65536);
    log_capture(log, &lines);
    if (geteuid() == 0 && seteuid(65534) != 0)
        abort();
    file_modes_foresee(&options, none, log);
    if ((getuid() == 0 && seteuid(0) != 0) || !buffer_add_byte(&lines, '\0'))
        abort();
    size_t count = 0;
    for (const char *at = lines.at; (at = strstr(at, "cannot be read by")) != NULL; at++)
        count++;
    bool right = path == NULL ? count == 0 : count == 1 && strstr(lines.at, path) != NULL;
    settings_free(&none);
    log_free(&log);
    buffer_free(&lines);
    return right;
}

/* Also where names that are no paths cannot be looked up: in a directory as root's. */
static void
test_keys(const char *directory, const char *file)
{
    char setting[400], here[200], folder[200], key[300];
    snprintf(folder, sizeof(folder), "%s/keys", directory);
    snprintf(here, sizeof(here), "%s/closed", directory);
    snprintf(key, sizeof(key), "%s/s._domainkey.a.test.pem", folder);
    FILE *made = NULL;
    if (mkdir(folder, 0755) != 0 || mkdir(here, 0700) != 0 || chmod(folder, 0755) != 0 ||
        (made = fopen(key, "w")) == NULL || fclose(made) != 0 || chdir(here) != 0)
        abort();
    snprintf(setting, sizeof(setting), "example.net p202611 %s", file);
    if (chmod(file, 0444) != 0)
        abort();
    ok_named(foresees_keys(setting, NULL), "domain and selector are no files");
    if (chmod(file, 0) != 0 || chmod(key, 0444) != 0)
        abort();
    ok_named(foresees_keys(setting, file), "the key of a row is one");
    ok_named(foresees_keys(folder, NULL), "a directory whose keys can be read");
    if (chmod(key, 0) != 0)
        abort();
    ok_named(foresees_keys(folder, key), "one of a key that cannot");
    if (chmod(folder, 0) != 0)
        abort();
    ok_named(foresees_keys(folder, folder), "one that cannot be read itself");
    if (chdir("/") != 0 || chmod(folder, 0700) != 0)
        abort();
    unlink(key);
    rmdir(folder);
    rmdir(here);
}

int
main(void)
{
    char directory[] = "/tmp/petrel-secrecy-XXXXXX", file[100], link_name[100];
    if (mkdtemp(directory) == NULL)
        abort();
    snprintf(file, sizeof(file), "%s/file", directory);
    snprintf(link_name, sizeof(link_name), "%s/link", directory);
    FILE *made = fopen(file, "w");
    if (made == NULL || fclose(made) != 0 || symlink(file, link_name) != 0)
        abort();
    warns(file, 0600, false, "the owner's alone");
    warns(file, 0640, false, "its group's");
    warns(file, 0644, true, "everybody's");
    warns(file, 0604, true, "everybody's but its group's");
    warns(link_name, 0644, false, "a link is not looked through");
    warns(directory, 0755, false, "a directory is no file");
    if (chmod(directory, 0755) != 0)
        abort();
    foresees(file, 0, true, "a reload could not read it");
    foresees(file, 0444, false, "it could");
    test_keys(directory, file);
    unlink(file);
    unlink(link_name);
    rmdir(directory);
    struct options none = {0};
    struct settings *settings = no_settings();
    struct buffer lines;
    struct log *log = log_new(NULL, LOG_STYLE_PETREL, LOG_LEVEL_DEBUG);
    buffer_init(&lines, 65536);
    log_capture(log, &lines);
    file_modes_warn(&none, settings, log);
    is_text(buffer_text(&lines), TEXT(""), "no file is set");
    settings_free(&settings);
    log_free(&log);
    buffer_free(&lines);
    return done();
}
