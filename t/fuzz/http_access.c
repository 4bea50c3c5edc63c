/* Fuzz target: the rules that keep browsers of others out, and the setting `http`. A
 * request that passes names a host that is ours, and has the fields that it must. */
#include "admin/http/http_access.h"
#include "admin/http/http_places.h"

#include "t/support/must.h"

#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const struct http_names names = {.hostname = {"h.example.org", 13}, .more = {"proxy.example.net", 17}};

static void
check_passed(const struct http_reader *reader)
{
    struct text host = http_reader_field(reader, TEXT("Host"));
    struct text site = http_reader_field(reader, TEXT("Sec-Fetch-Site"));
    struct text token = http_access_bearer(reader);
    must(host.length > 0 && text_find(host, '/') == TEXT_NONE &&
         text_find(host, '@') == TEXT_NONE && text_find(host, ' ') == TEXT_NONE);
    must(!text_ends_nocase(host, TEXT(".evil")));
    must(site.at == NULL || text_equal_nocase(site, TEXT("same-origin")) ||
         text_equal(reader->target, TEXT("/")));
    must(token.at != NULL ||
         text_equal(http_reader_field(reader, TEXT("X-Petrel")), TEXT("1")));
    (void)http_access_cookie(reader, TEXT("petrel"));
}

static void
check_places(struct text t)
{
    struct http_places places;
    struct buffer errors;
    buffer_init(&errors, 4096);
    bool good = http_places_read(t, &places, &errors);
    must(good == (errors.length == 0) || !good);
    must(places.count <= HTTP_PLACES_MAX);
    for (size_t i = 0; good && i < places.count; i++) {
        const struct http_place *p = &places.list[i];
        must(p->users.mode <= 0777 && p->users.uid_count <= NET_USERS_MAX);
        /* A passed socket's address is known, and judged, when it is opened. */
        must(p->access == HTTP_MAY_NOTHING || p->address.family == NET_UNIX ||
             p->address.family == NET_PASSED || net_address_is_loopback(&p->address));
    }
    (void)!http_names_check(t, &errors);
    buffer_free(&errors);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct http_limits limits = {HTTP_LINES_MAX, 8192, 1024};
    struct http_reader reader;
    struct text input = text_of(data, size);
    const char *why = NULL;
    check_places(input);
    http_reader_init(&reader, HTTP_REQUEST, &limits);
    if (http_reader_add(&reader, &input) == PROGRESS_DONE &&
        http_access_host(&reader, &names, &why) == 0 &&
        http_access_origin(&reader, &names, reader.target, &why) == 0 &&
        http_access_fields(&reader, HTTP_AREA_DATA, &why) == 0)
        check_passed(&reader);
    http_reader_free(&reader);
    return 0;
}
