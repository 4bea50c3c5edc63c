/* Sockets and certificates in the status. */
#include "admin/startup/listening.h"

#include "t/support/listener_world.h"

#include <stdlib.h>

static const struct server_rules plain = {.hostname = "mx.example.org", .size_limit = 10000000, .recipient_limit = 100, .hop_limit = 50, .error_limit = 20};
static char directory[] = "/tmp/petrel-listening-XXXXXX";

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

static struct tls_server *
http_tls(void *context)
{
    return listener_tls(context);
}

static void
http_route(void *context, struct http_exchange *exchange)
{
    (void)context;
    (void)exchange;
}

static struct http_server *
serve_http(struct world *w, struct http_places *places)
{
    char error[300] = "", place[80];
    struct buffer errors;
    buffer_init(&errors, 1000);
    snprintf(place, sizeof(place), "127.0.0.1:0?tls");
    dialog_must(http_places_read(text_from(place), places, &errors), "a place");
    buffer_free(&errors);
    struct http_server_settings settings = {.places = places, .tls = http_tls, .tls_context = w->listener, .route = http_route};
    struct http_server *http = http_server_new(w->loop, w->net, w->log, &settings, error, sizeof(error));
    dialog_must(http != NULL, error);
    return http;
}

static void
listen_as(struct world *w, const char *options)
{
    static char listen[300], certificate[200], key[200];
    snprintf(certificate, sizeof(certificate), "%s/many.pem, %s/expired.pem", directory, directory);
    snprintf(key, sizeof(key), "%s/many.key, %s/expired.key", directory, directory);
    snprintf(listen, sizeof(listen), "127.0.0.1:%u, 127.0.0.1:0?%s", w->port, options);
    w->settings.listen = text_from(listen);
    w->settings.tls_certificate = text_from(certificate);
    w->settings.tls_key = text_from(key);
    listener_free(&w->listener);
    loop_turn(w->loop, 0);
    w->listener = listener_new(w->loop, w->net, w->events, w->manager, w->routes, &w->settings, w->error, sizeof(w->error));
    dialog_must(w->listener != NULL, w->error);
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
check_listeners(const json_t *list, const struct world *w)
{
    char address[80];
    snprintf(address, sizeof(address), "127.0.0.1:%u", w->port);
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
    static struct world w;
    static struct http_places places;
    struct http_server *http = NULL;
    char command[300], path[100], error[300] = "";
    dialog_must(mkdtemp(directory) != NULL, "no directory");
    snprintf(command, sizeof(command), "sh t/support/tls_certificates.sh %s", directory);
    dialog_must(system(command) == 0, "no certificates");
    listener_world_start(&w, &plain, false, true);
    listen_as(&w, "lmtp&tls");
    snprintf(path, sizeof(path), "%s/control", directory);
    struct control_server *control = control_server_new(w.loop, w.net, w.log, w.manager, path, error, sizeof(error));
    dialog_must(control != NULL, error);
    struct certificate_keeper keeper = {.loop = w.loop, .log = w.log, .events = w.events, .listener = w.listener};
    certificate_keeper_note(&keeper, &w.settings);
    struct listening listening = {.loop = w.loop, .listener = w.listener, .control = control, .http = &http, .certificates = &keeper};
    listening_start(&listening);
    json_t *question = json_pack("{s:s}", "command", "status");
    json_t *status = questions_answer(control_server_questions(control), question);
    is_number((long)json_array_size(json_object_get(status, "listeners")), 3, "without HTTP");
    json_decref(status);
    http = serve_http(&w, &places);
    status = questions_answer(control_server_questions(control), question);
    check_listeners(json_object_get(status, "listeners"), &w);
    check_certificates(json_object_get(status, "certificates"));
    json_decref(status);
    json_decref(question);
    certificate_keeper_stop(&keeper);
    http_server_free(&http);
    control_server_free(&control);
    listener_world_end(&w);
    snprintf(command, sizeof(command), "rm -rf %s", directory);
    return system(command) != 0 || done();
}
