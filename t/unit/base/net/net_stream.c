/* Bytes keep their order and their limits, over sockets, pipes and files. */
#include "base/net/net.h"

#include "t/support/net_world.h"

TEST(backpressure)
{
    struct world *w = start("127.0.0.1:0");
    int fd = raw_client(w);
    char *bytes = pattern(NET_UNSENT_MAX);
    struct buffer got;
    size_t stuck = 0, sent = 0;
    int wrong = 0;

    buffer_init(&got, GOT_MAX);
    /* The kernel takes it in its own time: until it has taken no more for a while. */
    for (int calm = 0; calm < 50 && sent < GOT_MAX / 2; calm++) {
        stuck = net_unsent(w->server.connection);
        if (stuck < NET_HIGH_WATER) {
            net_send(w->server.connection, text_of(bytes, NET_HIGH_WATER / 2));
            sent += NET_HIGH_WATER / 2;
        }
        loop_turn(w->loop, 1);
        if (net_unsent(w->server.connection) != stuck)
            calm = 0;
    }
    ok_named(stuck >= NET_HIGH_WATER, "a peer that does not read makes output wait");
    ok_named(sent - stuck < 1024 * 1024, "the kernel keeps little of it");
    forget(&w->server);
    for (int i = 0; i < 20; i++)
        loop_turn(w->loop, 1);
    is_number(net_unsent(w->server.connection), stuck, "and wait");
    is_string(w->server.told, "", "without any event");
    while (strcmp(w->server.told, "D") != 0 && got.length < GOT_MAX - BLOCK) {
        char block[4096];
        ssize_t n = recv(fd, block, sizeof(block), MSG_DONTWAIT);

        if (n > 0 && !buffer_add(&got, text_of(block, (size_t)n)))
            abort();
        loop_turn(w->loop, 0);
    }
    is_string(w->server.told, "D", "when it reads, we hear that output has drained");
    ok_named(net_unsent(w->server.connection) < NET_LOW_WATER,
             "below the low-water mark");
    net_close(&w->server.connection);
    ok_named(raw_drain(w, fd, &got) >= 0, "the rest arrives");
    is_number(got.length % (NET_HIGH_WATER / 2), 0, "in full");
    for (size_t at = 0; at < got.length; at += NET_HIGH_WATER / 2)
        if (memcmp(got.at + at, bytes, NET_HIGH_WATER / 2) != 0)
            wrong++;
    is_number(wrong, 0, "unchanged");
    close(fd);
    buffer_free(&got);
    free(bytes);
    net_finish(w);
}

/* The mark of one connection is its own. */
TEST(low_water)
{
    struct world *w = start("127.0.0.1:0");
    int fd = raw_client(w);
    char *bytes = pattern(6000), block[6000];
    size_t got = 0;

    net_set_low_water(w->server.connection, 4096);
    forget(&w->server);
    net_send(w->server.connection, text_of(bytes, 3000));
    for (int i = 0; i < 5; i++)
        loop_turn(w->loop, 0);
    is_string(w->server.told, "", "below the mark nothing is told");
    net_send(w->server.connection, text_of(bytes, 3000));
    net_send(w->server.connection, text_of(bytes + 3000, 3000));
    for (int i = 0; i < 200 && strcmp(w->server.told, "D") != 0; i++)
        loop_turn(w->loop, 1);
    is_string(w->server.told, "D", "above it, that it has drained");
    forget(&w->server);
    net_send(w->server.connection, text_of(bytes, 4096));
    ok_named(net_unsent(w->server.connection) == 4096, "exactly the mark");
    for (int i = 0; i < 200 && strcmp(w->server.told, "D") != 0; i++)
        loop_turn(w->loop, 1);
    is_string(w->server.told, "D", "counts as reached: who pauses there is woken");
    while (got < 9000 + 4096) {
        ssize_t n = recv(fd, block, sizeof(block), 0);
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    is_number(got, 9000 + 4096, "all of it");
    close(fd);
    free(bytes);
    net_finish(w);
}

TEST(unsent_limit)
{
    struct world *w = start("127.0.0.1:0");
    int fd = raw_client(w);
    char *bytes = pattern(BLOCK);

    w->calling = true;
    for (int i = 0; i < NET_UNSENT_MAX / BLOCK; i++)
        net_send(w->server.connection, text_of(bytes, BLOCK));
    is_number(net_unsent(w->server.connection), NET_UNSENT_MAX, "exactly the limit");
    is_string(net_error(w->server.connection), "", "is no error");
    net_send(w->server.connection, TEXT("x"));
    w->calling = false;
    is_string(w->server.told, "", "one byte more tells nothing at once");
    until(w, w->server.told[0]);
    is_string(w->server.told, "F", "but breaks the connection");
    is_string(net_error(w->server.connection),
              "the peer does not read: 4194304 bytes are unsent", "with the reason");
    is_number(net_errno(w->server.connection), ENOBUFS, "and a number");
    is_number(net_unsent(w->server.connection), 0, "nothing is kept");
    net_send(w->server.connection, TEXT("x"));
    is_number(net_unsent(w->server.connection), 0, "nor taken any more");
    net_close(&w->server.connection);
    is_number(net_connections(w->net), 0, "a broken connection closes at once");
    close(fd);
    free(bytes);
    net_finish(w);
}

TEST(pause)
{
    struct world *w = start("127.0.0.1:0");
    int fd = raw_client(w);

    w->server.keeps = true;
    raw_send(fd, "one ");
    until(w, w->server.told[0]);
    is_text(net_input(w->server.connection), TEXT("one "), "input that was left stays");
    net_want_input(w->server.connection, false);
    raw_send(fd, "two ");
    for (int i = 0; i < 10; i++)
        loop_turn(w->loop, 1);
    is_text(net_input(w->server.connection), TEXT("one "),
            "a paused socket is not read");
    is_string(w->server.told, "I", "nor told of");
    forget(&w->server);
    w->calling = true;
    net_want_input(w->server.connection, true);
    w->calling = false;
    is_string(w->server.told, "", "resuming tells nothing at once");
    loop_turn(w->loop, 5000);
    is_string(w->server.told, "I", "but in the next turn, which does not wait");
    until(w, net_input(w->server.connection).length == 8);
    is_text(net_input(w->server.connection), TEXT("one two "), "input is one text");

    net_consume(w->server.connection, 2);
    is_text(net_input(w->server.connection), TEXT("e two "),
            "consumed outside an event");
    net_want_input(w->server.connection, false);
    net_want_input(w->server.connection, true);
    net_consume(w->server.connection, 6);
    forget(&w->server);
    for (int i = 0; i < 3; i++)
        loop_turn(w->loop, 0);
    is_string(w->server.told, "", "no event for input that has been consumed since");
    net_want_input(w->server.connection, false);
    close(fd);
    for (int i = 0; i < 5; i++)
        loop_turn(w->loop, 1);
    is_string(w->server.told, "", "the end waits too");
    net_want_input(w->server.connection, true);
    until(w, w->server.told[0]);
    is_string(w->server.told, "E", "until it is wanted");
    net_finish(w);
}

TEST(input_limit)
{
    struct world *w = start("127.0.0.1:0");
    size_t size = 300000, sent = 0;
    char *bytes = pattern(size);
    int fd = raw_client(w);

    fcntl(fd, F_SETFL, O_NONBLOCK);
    w->server.keeps = true;
    for (int i = 0; i < 300; i++) {
        ssize_t n = send(fd, bytes + sent, size - sent, MSG_NOSIGNAL);

        sent += n > 0 ? (size_t)n : 0;
        loop_turn(w->loop, 0);
    }
    is_number(net_input(w->server.connection).length, NET_INPUT_MAX,
              "unconsumed input stops at its limit");
    ok_named(memcmp(net_input(w->server.connection).at, bytes, NET_INPUT_MAX) == 0,
             "nothing is lost");
    w->server.keeps = false;
    net_consume(w->server.connection, 1000);
    until(w, w->server.got.length);
    ok_named(w->server.got.length > NET_INPUT_MAX - 1000, "room makes reading go on");
    for (int i = 0; i < 3000 && w->server.got.length < size - 1000; i++) {
        ssize_t n = send(fd, bytes + sent, size - sent, MSG_NOSIGNAL);

        sent += n > 0 ? (size_t)n : 0;
        loop_turn(w->loop, 1);
    }
    ok_named(
        text_equal(buffer_text(&w->server.got), text_of(bytes + 1000, size - 1000)),
        "to the last byte");
    close(fd);
    free(bytes);
    net_finish(w);
}

/* A peer that says why it will not take more, and closes: the reason must be heard. */
TEST(last_words)
{
    struct world *w = start("127.0.0.1:0");
    struct linger reset = {1, 0};
    int fd = raw_client(w);

    raw_send(fd, "421 too busy\r\n");
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(fd);
    net_send(w->server.connection, TEXT("MAIL FROM:<>\r\n"));
    until(w, strchr(w->server.told, 'F'));
    is_text(buffer_text(&w->server.got), TEXT("421 too busy\r\n"),
            "what was said before a reset is heard");
    is_string(w->server.told, "IF", "before the failure");
    ok_named(net_error(w->server.connection)[0], "which has a text");
    printf("# %s\n", net_error(w->server.connection));
    net_finish(w);
}

/* The sending side of the same: a loop that is busy sends after the reset. */
TEST(send_after_reset)
{
    struct world *w = start("127.0.0.1:0");
    struct linger reset = {1, 0};
    int fd = raw_client(w);

    net_want_input(w->server.connection, false);
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
    close(fd);
    usleep(2000);
    net_send(w->server.connection, TEXT("x"));
    until(w, w->server.told[0]);
    is_string(w->server.told, "F", "sending into a reset connection fails");
    ok_named(strstr(net_error(w->server.connection), "sending: ") != NULL,
             "and says what it was doing");
    net_close(&w->server.connection);
    net_finish(w);
}

TEST(adopt_pipes)
{
    struct world *w = start(NULL);
    int in[2], out[2];
    char at[100] = "";

    ok_named(pipe(in) == 0 && pipe(out) == 0, "two pipes");
    w->server.connection = net_adopt(w->net, in[0], out[1], on_event, &w->server);
    w->server.echoes = true;
    net_send(w->server.connection, TEXT("220 "));
    loop_turn(w->loop, 5000);
    is_number(read(out[0], at, sizeof(at)), 4, "a greeting needs no input to go out");
    ok_named(write(in[1], "hello", 5) == 5, "a byte in");
    until(w, is_readable(out[0]));
    is_number(read(out[0], at, sizeof(at)), 5, "a byte out");
    is_text(text_of(at, 5), TEXT("hello"), "the same");
    is_number(fcntl(in[0], F_GETFL) & O_NONBLOCK, 0, "shared flags are left alone");
    is_number(fcntl(out[1], F_GETFL) & O_NONBLOCK, 0, "on both sides");
    is_number(net_peer(w->server.connection)->family, NET_NONE,
              "a pipe has no address");
    close(in[1]);
    until(w, strchr(w->server.told, 'E'));
    is_string(w->server.told, "IE", "the end of a pipe is an end");
    close(out[0]);
    net_send(w->server.connection, TEXT("x"));
    until(w, strchr(w->server.told, 'F'));
    is_string(w->server.told, "IEF", "a pipe nobody reads is a failure, not a signal");
    is_string(net_error(w->server.connection), "sending: Broken pipe",
              "with its reason");
    net_close(&w->server.connection);
    ok_named(fcntl(in[0], F_GETFD) < 0 && fcntl(out[1], F_GETFD) < 0,
             "both are closed");
    net_finish(w);
}

TEST(adopt_slow_pipe)
{
    struct world *w = start(NULL);
    size_t size = 1000000, total = 0;
    char *bytes = pattern(size), *block = memory_new(BLOCK);
    int in[2], out[2];
    bool same = true;

    ok_named(pipe(in) == 0 && pipe(out) == 0, "two pipes");
    w->server.connection = net_adopt(w->net, in[0], out[1], on_event, &w->server);
    net_send(w->server.connection, text_of(bytes, size));
    for (int i = 0; i < 5; i++)
        loop_turn(w->loop, 0);
    ok_named(net_unsent(w->server.connection) > 0, "a full pipe does not block us");
    net_close(&w->server.connection);
    for (ssize_t got = 1; got > 0;) {
        loop_turn(w->loop, 0);
        if (!is_readable(out[0]))
            continue;
        got = read(out[0], block, BLOCK);
        same = same && (got <= 0 || memcmp(block, bytes + total, (size_t)got) == 0);
        total += got > 0 ? (size_t)got : 0;
    }
    is_number(total, size, "everything comes out");
    ok_named(same, "unchanged");
    is_number(net_connections(w->net), 0, "a pipe is not waited for after that");
    close(in[1]);
    close(out[0]);
    free(block);
    free(bytes);
    net_finish(w);
}

/* sendmail -bs < commands > replies */
TEST(adopt_files)
{
    struct world *w = start(NULL);
    FILE *from = tmpfile(), *to = tmpfile();
    size_t size = 200000;
    char *bytes = pattern(size), *copy = memory_new(size);

    ok_named(fwrite(bytes, 1, size, from) == size, "a file");
    rewind(from);
    fflush(from);
    w->server.connection =
        net_adopt(w->net, dup(fileno(from)), dup(fileno(to)), on_event, &w->server);
    w->server.echoes = true;
    until(w, strchr(w->server.told, 'E'));
    ok_named(w->server.told[0] == 'I' && strchr(w->server.told, 'E'),
             "a regular file is read to its end");
    net_close(&w->server.connection);
    until(w, !net_connections(w->net));
    is_number(net_connections(w->net), 0, "written and closed");
    ok_named(pread(fileno(to), copy, size, 0) == (ssize_t)size &&
                 memcmp(copy, bytes, size) == 0,
             "and copied byte by byte");
    fclose(from);
    fclose(to);
    free(copy);
    free(bytes);
    net_finish(w);
}

TEST(adopt_socket)
{
    struct world *w = start(NULL);
    char at[100];
    int pair[2];

    ok_named(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0, "a pair");
    w->server.connection =
        net_adopt(w->net, pair[0], dup(pair[0]), on_event, &w->server);
    w->server.echoes = true;
    raw_send(pair[1], "x");
    until(w, is_readable(pair[1]));
    is_string(raw_read(pair[1], at, sizeof(at)), "x",
              "a socket given as two descriptors");
    is_number(net_peer(w->server.connection)->family, NET_UNIX, "has an address");
    is_number(fcntl(pair[0], F_GETFL) & O_NONBLOCK, 0, "its flags are left alone");
    net_close(&w->server.connection);
    until(w, is_readable(pair[1]));
    is_string(raw_read(pair[1], at, sizeof(at)), "(end)", "is shut in one direction");
    is_number(net_connections(w->net), 1, "and waits for the other");
    close(pair[1]);
    until(w, !net_connections(w->net));
    is_number(net_connections(w->net), 0, "until it ends");
    net_finish(w);
}
