/* Sockets and certificates in the status. */
#include "admin/startup/daemon.h"

#include "t/support/must.h"
#include "t/support/port.h"
#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

enum { SETTINGS = 9, SETTING_MAX = 300 };

static char directory[] = "/tmp/petrel-sockets-XXXXXX";

static const char *
word(const json_t *list, size_t index, const char *key)
{
    const char *value = json_string_value(json_object_get(json_array_get(list, index), key));
    return value != NULL ? value : "(none)";
}

static json_int_t
number(const json_t *list, size_t index, const char *key)
{
    return json_integer_value(json_object_get(json_array_get(list, index), key));
}

static void
start(struct daemon *d, unsigned port, const char *http)
{
    static char text[SETTINGS][SETTING_MAX];
    static char *overrides[SETTINGS + 1];
    snprintf(text[0], SETTING_MAX, "spool=%s/spool", directory);
    snprintf(text[1], SETTING_MAX, "control=%s/control", directory);
    snprintf(text[2], SETTING_MAX, "tls_certificate=%s/many.pem, %s/expired.pem", directory, directory);
    snprintf(text[3], SETTING_MAX, "tls_key=%s/many.key, %s/expired.key", directory, directory);
    snprintf(text[4], SETTING_MAX, "listen=127.0.0.1:%u, 127.0.0.1:0?lmtp&tls", port);
    snprintf(text[5], SETTING_MAX, "hostname=mx.example.org");
    snprintf(text[6], SETTING_MAX, "log_level=error");
    snprintf(text[7], SETTING_MAX, "dns_servers=127.0.0.1:9");
    snprintf(text[8], SETTING_MAX, "http=%s", http);
    for (int i = 0; i < SETTINGS; i++)
        overrides[i] = text[i];
    *d = (struct daemon){
        .sources = {.file = "/dev/null", .overrides = overrides}
    };
    must(daemon_read(d));
    d->loop = loop_new();
    is_number(daemon_start(d, DAEMON_RUNS), 0, d->error);
}

static json_t *
status_of(struct daemon *d)
{
    json_t *question = json_pack("{s:s}", "command", "status");
    json_t *status = questions_answer(control_server_questions(d->control), question);
    json_decref(question);
    return status;
}

static void
check_certificates(const json_t *list)
{
    is_number((long)json_array_size(list), 2, "two certificates");
    ok_named(strstr(word(list, 0, "file"), "/many.pem") != NULL, "the file of the first");
    is_number(number(list, 0, "name_count"), 5, "its names");
    is_string(json_string_value(json_array_get(json_object_get(json_array_get(list, 0), "names"), 2)), "192.0.2.1", "an address among them");
    ok(json_is_true(json_object_get(json_array_get(list, 0), "valid")));
    ok_named(number(list, 0, "days_left") > 5000, "for long");
    ok(json_is_false(json_object_get(json_array_get(list, 1), "valid")));
    ok_named(number(list, 1, "days_left") < -1000, "the second is over");
    is_number(number(list, 1, "not_after_ms"), 1612325106000, "since then");
    is_number(number(list, 1, "not_before_ms"), 1577836800000, "and when it began");
}

static void
check_listeners(const json_t *list, unsigned port)
{
    char address[80];
    snprintf(address, sizeof(address), "127.0.0.1:%u", port);
    is_number((long)json_array_size(list), 4, "four sockets");
    is_string(word(list, 0, "address"), address, "the first");
    is_string(word(list, 0, "kind"), "smtp", "of SMTP");
    is_string(word(list, 0, "tls"), "starttls", "with STARTTLS");
    is_string(word(list, 1, "kind"), "lmtp", "the second: of LMTP");
    is_string(word(list, 1, "tls"), "tls", "under TLS");
    is_string(word(list, 2, "kind"), "http", "the third: of HTTP");
    is_string(word(list, 2, "tls"), "tls", "under TLS");
    ok_named(strcmp(word(list, 2, "address"), "127.0.0.1:0") != 0, word(list, 2, "address"));
    is_string(word(list, 3, "kind"), "control", "the last");
}

int
main(void)
{
    struct daemon d;
    char command[300];
    unsigned port = free_port();
    must(mkdtemp(directory) != NULL);
    snprintf(command, sizeof(command), "sh t/support/tls_certificates.sh %s", directory);
    must(system(command) == 0);
    start(&d, port, "");
    json_t *status = status_of(&d);
    is_number((long)json_array_size(json_object_get(status, "listeners")), 3, "without HTTP");
    json_decref(status);
    daemon_stop(&d);
    start(&d, port, "127.0.0.1:0?tls");
    status = status_of(&d);
    check_listeners(json_object_get(status, "listeners"), port);
    check_certificates(json_object_get(status, "certificates"));
    json_decref(status);
    daemon_stop(&d);
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    return system(command) != 0 || done();
}
