"""S3 servers that are not ours, from their own registries; each serves directories as buckets, on loopback."""

import os
import pathlib
import shutil
import socket
import subprocess
import time

from house import installed, places
from house.checking import Failed, Skip

VERSITYGW = "v1.8.0"
S3PROXY = "4.1.0"
MAVEN_PLUGIN = "3.6.1"
# What a service calls itself, and what its users know.
KEYS = {"AWS_ACCESS_KEY_ID": "AKEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret-of-the-example"}
START_SECONDS_MAX = 20


def versitygw(may_install):
    """The program, built from its source by Go's module proxy: some minutes."""
    directory = places.target_directory() / "test-servers" / "versitygw"
    binary = directory / "bin" / "versitygw"
    if not may_install and not binary.exists():
        raise Skip("versitygw is not installed yet; --full does so")
    go = shutil.which("go")
    if go is None and not binary.exists():
        raise Skip("golang-go is not installed, which builds versitygw")

    def install():
        environment = os.environ | {"GOBIN": str(directory / "bin"), "GOFLAGS": "-p=2"}
        directory.mkdir(parents=True)
        installed.run(go, "install", f"github.com/versity/versitygw/cmd/versitygw@{VERSITYGW}", env=environment)

    return installed.once(directory, VERSITYGW, install) / "bin" / "versitygw"


def s3proxy():
    """The program, from Maven's central repository, and the Java to run it."""
    java, maven = shutil.which("java"), shutil.which("mvn")
    directory = places.target_directory() / "test-servers" / "s3proxy"
    name = f"s3proxy-{S3PROXY}-jar-with-dependencies.jar"
    if java is None or maven is None and not (directory / name).exists():
        raise Skip("maven and default-jre-headless are not installed, which fetch and run s3proxy")

    def install():
        installed.run(maven, "-q", "-B", f"org.apache.maven.plugins:maven-dependency-plugin:{MAVEN_PLUGIN}:copy",
                      f"-Dartifact=org.gaul:s3proxy:{S3PROXY}:jar:jar-with-dependencies", f"-DoutputDirectory={directory}")

    return java, installed.once(directory, S3PROXY, install) / name


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def answers(port):
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    except OSError:
        return False


class Server:
    """A server of others over directories, on a port of its own."""

    name = None

    def __init__(self, scratch: pathlib.Path):
        self.scratch, self.port = scratch, free_port()
        self.process = None

    def begin(self, command, environment=os.environ):
        told = self.scratch / f"{self.name}.log"
        with open(told, "ab") as out:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                                            env=environment)
        end = time.monotonic() + START_SECONDS_MAX
        while not answers(self.port):
            if self.process.poll() is not None or time.monotonic() > end:
                raise Failed(f"{self.name} does not start: {told.read_text()[-500:]}")
            time.sleep(0.05)
        return KEYS | {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port}", "AWS_ALLOW_HTTP": "true",
                       "AWS_REGION": "us-east-1"}

    def end(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()


class Versity(Server):
    """versitygw: the files in the directories are the objects."""

    name = "versitygw"

    def __init__(self, scratch: pathlib.Path, may_install):
        super().__init__(scratch)
        self.binary = versitygw(may_install)

    def start(self):
        side, data = self.scratch / "sidecar", self.scratch / "buckets"
        side.mkdir(exist_ok=True)
        environment = os.environ | {
            "ROOT_ACCESS_KEY": KEYS["AWS_ACCESS_KEY_ID"], "ROOT_SECRET_KEY": KEYS["AWS_SECRET_ACCESS_KEY"]}
        return self.begin([self.binary, "--port", f"127.0.0.1:{self.port}", "posix", "--sidecar", side, data], environment)

    def unfinished(self):
        """How many uploads it keeps that nobody has completed or aborted."""
        return sum(1 for _ in (self.scratch / "buckets").glob("*/.sgwtmp/multipart/*/*"))


class S3Proxy(Server):
    """s3proxy, with files as objects too."""

    name = "s3proxy"

    def start(self):
        java, jar = s3proxy()
        settings = self.scratch / "s3proxy.properties"
        settings.write_text(f"""s3proxy.endpoint=http://127.0.0.1:{self.port}
s3proxy.authorization=aws-v2-or-v4
s3proxy.identity={KEYS["AWS_ACCESS_KEY_ID"]}
s3proxy.credential={KEYS["AWS_SECRET_ACCESS_KEY"]}
jclouds.provider=filesystem-nio2
jclouds.filesystem.basedir={self.scratch / "buckets"}
""")
        return self.begin([java, "-jar", jar, "--properties", settings])

    def unfinished(self):
        return 0
