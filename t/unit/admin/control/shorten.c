/* An object with very long lists is JSON within its limit, and counts the items that it
 * lacks. */
#include "admin/control/shorten.h"

#include "t/support/tap.h"

#include <stdlib.h>
#include <string.h>

static json_t *
listing_of(size_t recipients, size_t reasons, size_t hops)
{
    json_t *listing = json_pack("{s:s,s:[],s:{s:[],s:[],s:i}}", "queue_id", "x", "recipients", "why", "reasons", "hops",
                                "hops_more", 5);
    json_t *why = json_object_get(listing, "why");
    for (size_t i = 0; i < recipients; i++)
        json_array_append_new(json_object_get(listing, "recipients"), json_pack("{s:i,s:b}", "address", (int)i, "done", 0));
    for (size_t i = 0; i < reasons; i++)
        json_array_append_new(json_object_get(why, "reasons"), json_sprintf("host said: 450 %zu", i));
    for (size_t i = 0; i < hops; i++)
        json_array_append_new(json_object_get(why, "hops"), json_pack("{s:i}", "destination", (int)i));
    return listing;
}

static long
number_at(const json_t *object, const char *key)
{
    return (long)json_integer_value(json_object_get(object, key));
}

/* All are there or counted, the first ones stay. */
static void
is_whole(const json_t *of, const char *list, const char *more, long count, const char *name)
{
    const json_t *items = json_object_get(of, list);
    is_number((long)json_array_size(items) + number_at(of, more), count, name);
}

static void
test_listing(size_t recipients, size_t reasons, size_t hops, size_t most)
{
    char *text = shorten_write(listing_of(recipients, reasons, hops), most);
    ok_named(text != NULL && strlen(text) <= most, "within the limit");
    json_t *read = json_loads(text != NULL ? text : "", 0, NULL), *why = json_object_get(read, "why");
    is_whole(read, "recipients", "recipients_more", (long)recipients, "recipients");
    is_whole(why, "reasons", "reasons_more", (long)reasons, "reasons");
    is_whole(why, "hops", "hops_more", (long)hops + 5, "next hops");
    const json_t *first = json_array_get(json_object_get(read, "recipients"), 0);
    ok_named(json_array_size(json_object_get(read, "recipients")) == 0 || number_at(first, "address") == 0, "from the first");
    json_decref(read);
    free(text);
}

/* Items that are cut cost nothing, and those that fit stay. */
TEST(full)
{
    char *text = shorten_write(listing_of(50000, 0, 0), 10000);
    ok_named(text != NULL && strlen(text) > 8500, "a list that is too long alone fills the answer");
    free(text);
    json_t *listing = listing_of(200, 0, 0);
    size_t most = json_dumpb(listing, NULL, 0, JSON_COMPACT);
    text = shorten_write(listing, most);
    ok_named(text != NULL && strlen(text) == most && strstr(text, "recipients_more") == NULL, "one that fits stays whole");
    free(text);
}

/* Any list: a status has several. */
TEST(status)
{
    json_t *status = json_pack("{s:i,s:[],s:[s,s]}", "uptime_s", 7, "tls_reports", "sites", "a", "b");
    for (int i = 0; i < 16000; i++)
        json_array_append_new(json_object_get(status, "tls_reports"),
                              json_pack("{s:s,s:i}", "domain", "a-long-name.example.org", "count", i));
    char *text = shorten_write(status, 128 * 1024);
    json_t *read = json_loads(text != NULL ? text : "", 0, NULL);
    is_whole(read, "tls_reports", "tls_reports_more", 16000, "rows");
    ok(json_array_size(json_object_get(read, "tls_reports")) > 1000 && number_at(read, "uptime_s") == 7);
    ok_named(json_array_size(json_object_get(read, "sites")) == 2 && json_object_get(read, "sites_more") == NULL,
             "short lists stay");
    json_decref(read);
    free(text);
}

int
main(void)
{
    tap_tests("");
    test_listing(3, 3, 3, 1000);
    test_listing(1, 0, 0, 120);
    test_listing(50000, 1000, 100, 200 * 1024);
    test_listing(50000, 1000, 100, 1000);
    test_listing(0, 1000, 100, 1000);
    test_listing(0, 0, 50000, 1000);
    ok_named(shorten_write(listing_of(10, 10, 10), 20) == NULL, "a limit that nothing fits into");
    char *text = shorten_write(json_pack("{s:[s,s]}", "recipients", "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy", "z"), 75);
    is_string(text != NULL ? text : "", "{\"recipients\":[\"yyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\",\"z\"]}", "without why");
    free(text);
    return done();
}
