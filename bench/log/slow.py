"""A TCP proxy that lets through so many bytes a second in each direction: `slow.py PORT TARGET-PORT BYTES`.

For machines on which no network namespace can be made; see places.py.
"""

import socket
import sys
import threading
import time

PIECE = 128 << 10


def carry(source: socket.socket, sink: socket.socket, rate: float) -> None:
    """Passes bytes on, each piece when its time has come. A rest does not count for more than a tenth of a second."""
    due = time.monotonic()
    try:
        while data := source.recv(PIECE):
            due = max(due, time.monotonic() - 0.1) + len(data) / rate
            time.sleep(max(0.0, due - time.monotonic()))
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        source.close()
        sink.close()


def main() -> None:
    port, target, rate = int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
    listener = socket.create_server(("127.0.0.1", port))
    print("listening", flush=True)
    while True:
        near, _ = listener.accept()
        far = socket.create_connection(("127.0.0.1", target))
        for link in (near, far):
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for source, sink in ((near, far), (far, near)):
            threading.Thread(target=carry, args=(source, sink, rate), daemon=True).start()


if __name__ == "__main__":
    main()
