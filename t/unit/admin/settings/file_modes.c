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
    struct options options = {.tls_key = file};
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
