#!/usr/bin/python3
"""Policy hosts of MTA-STS that never finish: slow_policies.py PEM KEY PORT MODE@ADDRESS... prints "ready".

MODE: silent (accepts, no TLS), mute (TLS, no answer), head (a part of the head), body (the head, and a byte each half
second for ever), lines (a head without end, a line each half second)."""
import socket
import ssl
import sys
import threading
import time

pem, key, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(pem, key)


def drip(tls, piece):
    while True:
        tls.sendall(piece)
        time.sleep(0.5)


def answer(mode, connection):
    try:
        if mode == "silent":
            connection.recv(1 << 16)
            time.sleep(3600)
        tls = context.wrap_socket(connection, server_side=True)
        tls.recv(1 << 16)
        if mode == "head":
            tls.sendall(b"HTTP/1.1 200 OK\r\nContent-")
        elif mode == "body":
            tls.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 60000\r\n\r\nversion: STSv1\n")
            drip(tls, b"x")
        elif mode == "lines":
            tls.sendall(b"HTTP/1.1 200 OK\r\n")
            drip(tls, b"X-More: 1\r\n")
        time.sleep(3600)
    except (OSError, ssl.SSLError):
        pass


def serve(mode, listener):
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(mode, connection), daemon=True).start()


for word in sys.argv[4:]:
    mode, address = word.split("@")
    listener = socket.create_server((address, port), backlog=64)
    threading.Thread(target=serve, args=(mode, listener), daemon=True).start()
print("ready", flush=True)
time.sleep(3600)
