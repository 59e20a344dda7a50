"""A proxy between Sluice and an S3 server that spoils requests: it answers by itself, or cuts the connection before the
request has arrived, or after it was carried out and before the answer is told."""

import http.client
import http.server
import threading

SLOW_DOWN = (503, b"<?xml version=\"1.0\"?><Error><Code>SlowDown</Code></Error>")
EXPIRED = (400, b"<?xml version=\"1.0\"?><Error><Code>ExpiredToken</Code></Error>")
REFUSED = (400, b"<?xml version=\"1.0\"?><Error><Code>BadDigest</Code></Error>")
CUT, CUT_ANSWER = "cut", "cut the answer"


def kind(method, path):
    """What a request is about, as tests name it."""
    query = path.partition("?")[2]
    if "uploadId=" in query:
        return {"PUT": "part", "POST": "complete", "DELETE": "abort"}.get(method, method)
    if method == "POST":
        return "begin" if "uploads" in query else method
    return {"PUT": "put"}.get(method, method)


class Cutter:
    """`judge(kind, path)` says what becomes of a request: None, one of the above, or a status and a body."""

    def __init__(self, port, judge=lambda kind, path: None):
        self.judge, self.seen = judge, []
        cutter = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def carry(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                about = kind(self.command, self.path)
                cutter.seen.append((about, self.path))
                verdict = cutter.judge(about, self.path)
                if verdict == CUT:
                    self.close_connection = True
                    return self.connection.close()
                if isinstance(verdict, tuple):
                    return self.answer(verdict[0], {}, verdict[1])
                try:
                    server = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
                    server.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
                    for name, value in self.headers.items():
                        server.putheader(name, value)
                    server.endheaders(body)
                    done = server.getresponse()
                    content, headers = done.read(), dict(done.getheaders())
                except OSError:
                    self.close_connection = True
                    return self.connection.close()
                finally:
                    server.close()
                if verdict == CUT_ANSWER:
                    self.close_connection = True
                    return self.connection.close()
                self.answer(done.status, headers, content)

            def answer(self, status, headers, content):
                self.send_response_only(status)
                length = headers.get("Content-Length", headers.get("content-length", str(len(content))))
                for name, value in headers.items():
                    if name.lower() not in ("content-length", "transfer-encoding", "connection"):
                        self.send_header(name, value)
                self.send_header("Content-Length", length if self.command == "HEAD" else str(len(content)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(content)

            do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = carry

            def handle(self):
                try:
                    super().handle()
                except OSError:
                    pass

            def finish(self):
                try:
                    super().finish()
                except (OSError, ValueError):
                    pass

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def count(self, about):
        return sum(1 for kind, _ in self.seen if kind == about)

    def end(self):
        self.server.shutdown()
        self.server.server_close()
