"""sluice's own commands on buckets, services of buckets, mounts."""

import http.server
import threading

from house import mounts
from house.checking import Skip, run, want
from house.services import Service
from objects.scene import bytes_of, check

MIB = 1 << 20


@check
def commands_take_buckets(scene):
    content = bytes_of(20 * MIB + 3)
    source = scene.scratch / "source"
    source.write_bytes(content)
    scene.command("cp", source, "s3://bucket/dir/file")
    want(scene.held("dir/file") == content, "cp to a bucket")
    want(scene.command("cat", "s3://bucket/dir/file").stdout == content, "cat")
    said = scene.command("ls", "s3://bucket").stdout.decode()
    want(said.split() == ["dir"] or said.split() == ["dir/"], said)
    said = scene.command("stat", "--json", "s3://bucket/dir/file").stdout.decode()
    want(str(len(content)) in said, said)
    back = scene.scratch / "back"
    scene.command("cp", "s3://bucket/dir/file", back)
    want(back.read_bytes() == content, "cp from a bucket")
    scene.command("cp", "-", "s3://bucket/piped", input=b"from a pipe")
    want(scene.held("piped") == b"from a pipe", "cp of standard input")
    scene.command("rm", "s3://bucket/piped")
    want(scene.held("piped") is None, "rm")


@check
def trees_are_copied_both_ways_and_removed(scene):
    tree = scene.scratch / "tree"
    for name in ("a", "b/c", "b/d e", "b/f/g"):
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_bytes(name.encode())
    scene.command("cp", "-r", tree, "s3://bucket/")
    held = {str(path.relative_to(scene.bucket)) for path in scene.bucket.rglob("*") if path.is_file()}
    want({name for name in held if not name.startswith(".")} == {f"tree/{n}" for n in ("a", "b/c", "b/d e", "b/f/g")}, held)
    scene.command("cp", "-r", "s3://bucket/tree", scene.scratch / "again")
    for name in ("a", "b/c", "b/d e", "b/f/g"):
        want((scene.scratch / "again" / name).read_bytes() == name.encode(), name)
    scene.command("rm", "-r", "s3://bucket/tree")
    held = [path for path in (scene.bucket / "tree").rglob("*") if path.is_file()]
    want(not held, held)


@check
def directories_are_made_and_removed(scene):
    scene.command("mkdir", "s3://bucket/made")
    scene.command("cp", "-", "s3://bucket/made/file", input=b"x")
    want(scene.held("made/file") == b"x", "a file in a directory that was made")
    scene.command("rm", "s3://bucket/made/file")
    scene.command("rm", "-r", "s3://bucket/made", expect=None)
    want("made" not in scene.command("ls", "s3://bucket").stdout.decode(), "removed")


@check
def errors_are_sentences(scene):
    said = scene.command("ls", "s3://nowhere", expect=1).stderr.decode()
    want("there is no such bucket" in said, said)
    scene.environment["AWS_ACCESS_KEY_ID"] = "nobody"
    said = scene.command("cat", "s3://bucket/x", expect=1).stderr.decode()
    want("the credentials do not allow this" in said, said)
    scene.environment["AWS_ENDPOINT_URL"] = "http://127.0.0.1:1"
    said = scene.command("cat", "s3://bucket/x", expect=1, seconds_max=150).stderr.decode()
    want("is not reached" in said, said)


@check
def a_failed_copy_leaves_what_was_there(scene):
    scene.put("file", b"former")
    scene.command("cp", "/proc/self/mem", "s3://bucket/file", expect=1)
    want(scene.held("file") == b"former", scene.held("file"))


@check
def a_service_offers_a_bucket(scene):
    scene.put("base/file", b"content")
    scene.start()
    prefix = ("env", *(f"{name}={value}" for name, value in scene.environment.items()))
    with Service(scene.sluice, ["b=s3://bucket/base"], f"unix:{scene.scratch}/s.sock", prefix=prefix) as service:
        said = run(scene.sluice, "cat", f"{service.uri}/b/file").stdout
        want(said == b"content", said)
        source = scene.scratch / "source"
        source.write_bytes(bytes_of(20 * MIB))
        run(scene.sluice, "cp", source, f"{service.uri}/b/copied")
        want(scene.held("base/copied") == source.read_bytes(), "cp")
        run(scene.sluice, "run", "--", "cp", source, f"{service.uri}/b/by a program")
        want(scene.held("base/by a program") == source.read_bytes(), "cp(1)")


@check
def a_bucket_is_mounted(scene):
    reason = mounts.unusable()
    if reason:
        raise Skip(reason)
    scene.put("file", b"content")
    mounted = scene.scratch / "mounted"
    mounted.mkdir()
    scene.mounts.append(mounted)
    scene.command("mount", "--daemon", "s3://bucket", mounted)
    want((mounted / "file").read_bytes() == b"content", "read")
    content = bytes_of(20 * MIB)
    (mounted / "new").write_bytes(content)
    want(scene.held("new") == content, "written")
    run(scene.sluice, "umount", mounted)


@check
def files_of_a_web_server_are_read(scene):
    content = bytes_of(3 * MIB)

    class Handler(http.server.BaseHTTPRequestHandler):
        """Python's own knows no ranges."""

        def answer(self, body):
            if self.path != "/some/file.bin":
                return self.send_error(404)
            part, status = content, 200
            if wanted := self.headers.get("Range"):
                first, _, last = wanted.removeprefix("bytes=").partition("-")
                part, status = content[int(first):int(last) + 1], 206
            self.send_response(status)
            if status == 206:
                self.send_header("Content-Range", f"bytes {first}-{int(first) + len(part) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(part)))
            self.send_header("Accept-Ranges", "bytes")
            self.send_header("Last-Modified", "Sat, 01 Nov 2025 10:00:00 GMT")
            self.end_headers()
            if body:
                self.wfile.write(part)

        def do_GET(self):
            self.answer(True)

        def do_HEAD(self):
            self.answer(False)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    place = f"http://127.0.0.1:{server.server_port}/some"
    try:
        want(scene.command("cat", f"{place}/file.bin").stdout == content, "cat")
        said = scene.sluice_run("tail", "-c", "100", "/web/file.bin", options=("--map", f"/web={place}"))
        want(said.stdout == content[-100:], "a program, by a mapped prefix")
        said = scene.command("cat", f"{place}/missing", expect=1).stderr.decode()
        want("No such file" in said, said)
    finally:
        server.shutdown()
