/* admin/settings/synonyms.c: Postfix's names are the same or refused. */
#include "admin/settings/synonyms.h"

#include "admin/settings/options.h"
#include "base/settings/settings_value.h"
#include "t/support/tap.h"

static struct options options;
static struct settings *settings;

static void
begin(const char *file, const char *one, const char *other, const char *variable)
{
    static char copies[3][200];
    snprintf(copies[0], sizeof(copies[0]), "%s", one ? one : "");
    snprintf(copies[1], sizeof(copies[1]), "%s", other ? other : "");
    snprintf(copies[2], sizeof(copies[2]), "%s", variable ? variable : "");
    char *const overrides[] = {one ? copies[0] : NULL, other ? copies[1] : NULL, NULL};
    char *const environment[] = {variable ? copies[2] : NULL, NULL};
    struct options_sources sources = {
        .file = file, .overrides = overrides, .environment = environment};
    settings_free(&settings);
    settings = options_read(&sources, &options);
}

TEST(table)
{
    for (const struct setting_synonym *a = synonyms_rows; a->name; a++) {
        ok_named(settings_find(options_rows, text_from(a->name)) == NULL, a->name);
        ok_named(a->key == NULL ||
                     settings_find(options_rows, text_from(a->key)) != NULL,
                 a->name);
        ok_named(a->help != NULL || (a->key != NULL && a->takes == NULL), a->name);
        for (const struct setting_synonym *b = a + 1; b->name; b++)
            if (text_equal_nocase(text_from(a->name), text_from(b->name)))
                ok_named(false, a->name);
    }
}

TEST(both)
{
    begin(NULL, "mynetworks=10.0.0.0/8", "relay_from=::1", NULL);
    is_text(settings_errors(settings),
            TEXT("command line: relay_from: mynetworks is set too\n"), "both names");
}

TEST(postfix)
{
    begin(NULL, "mynetworks=10.0.0.0/8 [::1]/128", "relayhost=[m.test]:587",
          "PETREL_SMTP_TLS_CAFILE=/x");
    is_text(settings_errors(settings), TEXT(""), "names of Postfix");
    is_text(settings_warnings(settings), TEXT(""), "without a warning");
    is_text(options.server.relay_from, TEXT("10.0.0.0/8 [::1]/128"), "mynetworks");
    is_string(options.relay, "[m.test]:587", "relayhost");
    is_string(options.tls_ca, "/x", "smtp_tls_CAfile, in upper case");
    begin(NULL, "relayhost=m.test", NULL, NULL);
    ok(text_starts(settings_errors(settings),
                   TEXT("command line: relayhost: without brackets ")));
    begin(NULL, "inet_interfaces=all", NULL, NULL);
    is_text(settings_errors(settings),
            TEXT("command line: inet_interfaces: a setting of Postfix; write listen = "
                 "ADDRESS:PORT, for example listen = 0.0.0.0:25, [::]:25\n"),
            "refused");
    begin(NULL, NULL, NULL, "PETREL_TRANSPORT_MAPS=hash:/x");
    ok(text_starts(settings_errors(settings),
                   TEXT("environment: PETREL_TRANSPORT_MAPS: a setting of Postfix; ")));
}

int
main(void)
{
    tap_tests("");
    settings_free(&settings);
    return done();
}
