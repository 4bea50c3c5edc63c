/* Lists the sockets of three servers, and the certificates of one. */
#include "admin/startup/listening.h"

#include "admin/control/listing.h"

#define DAY_MS (24 * 3600 * 1000LL)

struct certificate_names {
    json_t *list;
    size_t count;
};

static void
listening_add(json_t *list, const struct net_address *address, const char *kind,
              const char *tls, const struct net_listener_counts *counts)
{
    char text[NET_ADDRESS_TEXT_MAX];
    net_address_format(address, text);
    json_array_append_new(list,
                          json_pack("{s:o,s:s,s:s,s:I,s:I}", "address",
                                    listing_text(text_from(text)), "kind", kind, "tls",
                                    tls, "sessions", (json_int_t)counts->open,
                                    "accepted", (json_int_t)counts->accepted));
}

/* A questions_on_part(). */
static json_t *
listening_sockets(void *context)
{
    const struct listening *l = context;
    json_t *list = json_array();
    struct listener_view view;
    struct net_listener_counts counts;
    const struct http_place *place;
    for (size_t i = 0; listener_describe(l->listener, i, &view); i++)
        listening_add(list, view.address, view.kind, view.tls,
                      &(struct net_listener_counts){.accepted = view.accepted,
                                                    .open = view.sessions});
    for (size_t i = 0;
         *l->http != NULL && (place = http_server_place(*l->http, i)) != NULL; i++) {
        counts = http_server_place_counts(*l->http, i);
        listening_add(list, &place->address, "http", place->tls ? "tls" : "none",
                      &counts);
    }
    const struct net_address *control = control_server_address(l->control, &counts);
    listening_add(list, control, "control", "none", &counts);
    struct net_address door;
    for (size_t i = 0; l->peer != NULL && peer_wiring_door(l->peer, i, &door, &counts);
         i++)
        listening_add(list, &door, "peer", "secret", &counts);
    return list;
}

static void
listening_add_name(void *context, const char *name)
{
    struct certificate_names *names = context;
    if (names->count++ < LISTENING_NAMES_MAX)
        json_array_append_new(names->list, json_string(name));
}

/* Rounded down: -1 on the day after its end. */
static int64_t
listening_days(int64_t left_ms)
{
    return left_ms >= 0 ? left_ms / DAY_MS : -1 - (-1 - left_ms) / DAY_MS;
}

/* A questions_on_part(). */
static json_t *
listening_certificates(void *context)
{
    const struct listening *l = context;
    const struct tls_server *server = listener_tls(l->listener);
    int64_t now_ms = loop_now_ms(l->loop);
    json_t *list = json_array();
    struct tls_certificate c;
    for (size_t i = 0; server != NULL && tls_server_certificate(server, i, &c); i++) {
        struct certificate_names names = {.list = json_array()};
        tls_server_each_name(server, i, listening_add_name, &names);
        json_array_append_new(
            list, json_pack("{s:o,s:o,s:I,s:I,s:I,s:I,s:b}", "file",
                            listing_text(
                                text_from(certificate_keeper_file(l->certificates, i))),
                            "names", names.list, "name_count", (json_int_t)names.count,
                            "not_before_ms", (json_int_t)c.from_ms, "not_after_ms",
                            (json_int_t)c.until_ms, "days_left",
                            (json_int_t)listening_days(c.until_ms - now_ms), "valid",
                            c.from_ms <= now_ms && now_ms <= c.until_ms));
    }
    return list;
}

void
listening_start(struct listening *l)
{
    struct questions *questions = control_server_questions(l->control);
    questions_on_part(questions, "listeners", listening_sockets, l);
    questions_on_part(questions, "certificates", listening_certificates, l);
}
