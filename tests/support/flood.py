"""A client that floods: keeps 32 requests of one method unanswered until it is killed, whatever
is answered.

python flood.py SOCKET METHOD JSON-PARAMS
"""

import json
import socket
import sys

import msgpack

path, method, params = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
sock = socket.socket(socket.AF_UNIX)
sock.connect(path)
unpacker = msgpack.Unpacker(raw=False, max_buffer_size=64 << 20)
hello = {"client": "flood", "version": "1", "protocol": [1, 1], "errors": "map"}
sock.sendall(msgpack.packb([0, 0, "hello", [hello]]))
sent = answered = 0
while True:
    while sent - answered < 32:
        sent += 1
        sock.sendall(msgpack.packb([0, sent, method, [params]]))
    unpacker.feed(sock.recv(1 << 16))
    for message in unpacker:
        if message[1]:
            # What a flood cannot have in time is refused, and asked again at once.
            assert message[2] is None or message[2]["code"] == "busy", message[2]
            answered += 1
            if answered == 32:
                print("flooding", flush=True)
