/* Files with secrets that everybody can read are found, others not; and files that a reload could not read. */
#include "admin/findings/faults_internal.h"

#include "t/support/tap.h"

#include <sys/stat.h>
#include <unistd.h>

/* The faults of these files: in a daemon that has given up root's rights, so that as root
 * this is another user; nobody keeps a file from root. */
static struct faults
judge(fault_judge *find, struct options *options)
{
    static char user[] = "mail";
    struct faults found = {.when = FAULT_START, .row = faults_row_of(find)};
    options->user = user;
    struct settings *none = settings_new(options_rows, "PETREL", &(struct options){0});
    struct fault_world world = {.options = options, .settings = none};
    bool becomes = find == faults_judge_unreadable && geteuid() == 0;
    if (becomes && seteuid(65534) != 0)
        abort();
    ok(!find(&world, &found));
    if (becomes && seteuid(0) != 0)
        abort();
    settings_free(&none);
    return found;
}

/* path NULL: none is found. */
static void
is_found(struct faults *found, const char *words, const char *path, const char *name)
{
    is_number(found->count, path != NULL, name);
    for (size_t i = 0; i < found->count; i++)
        ok_named(strstr(found->items[i].text, words) != NULL && strstr(found->items[i].text, path) != NULL, "its path");
    faults_free(found);
}

static void
warns(char *path, mode_t mode, bool want, const char *name)
{
    struct options options = {.auth_passwords = path};
    if (chmod(path, mode) != 0)
        abort();
    struct faults found = judge(faults_judge_secrets, &options);
    is_found(&found, "can be read by all users: chmod 600", want ? path : NULL, name);
}

static void
foresees(char *file, mode_t mode, bool want, const char *name)
{
    struct options options = {.server.tls_key = text_from(file)};
    if (chmod(file, mode) != 0)
        abort();
    struct faults found = judge(faults_judge_unreadable, &options);
    is_found(&found, "cannot be read by `user`", want ? file : NULL, name);
}

static void
foresees_keys(char *setting, const char *path, const char *name)
{
    struct options options = {.dkim_keys = setting};
    struct faults found = judge(faults_judge_unreadable, &options);
    is_found(&found, "cannot be read by `user`", path, name);
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
    foresees_keys(setting, NULL, "domain and selector are no files");
    if (chmod(file, 0) != 0 || chmod(key, 0444) != 0)
        abort();
    foresees_keys(setting, file, "the key of a row is one");
    foresees_keys(folder, NULL, "a directory whose keys can be read");
    if (chmod(key, 0) != 0)
        abort();
    foresees_keys(folder, key, "one of a key that cannot");
    if (chmod(folder, 0) != 0)
        abort();
    foresees_keys(folder, folder, "one that cannot be read itself");
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
    struct faults found = judge(faults_judge_secrets, &none);
    is_found(&found, "", NULL, "no file is set");
    return done();
}
