"""Addresses that lead nowhere, and names that are not what the caller thinks."""

from faults.scenario import clear_sentence, hold, scenario


@scenario
def unknown_scheme(house):
    """A scheme nobody serves is named, by the command line and by the launcher."""
    clear_sentence(house.cli("cat", "scdc+pigeon://host/far/file.txt"), "pigeon")
    clear_sentence(house.cli("run", "--map", "/far=scdc+pigeon://host/far", "--", "true"), "pigeon")
    clear_sentence(house.cli("serve", "far=/tmp", "--listen", "pigeon:1"), "pigeon")


@scenario
def unknown_scheme_in_a_program(house):
    """A program that opens an address of an unknown scheme gets an errno and makes no local file."""
    done = house.cli("run", "--", "cat", "scdc+pigeon://host/far/file.txt")
    clear_sentence(done, "pigeon")
    done = house.cli("run", "--", "bash", "-c", "echo x > scdc+pigeon://host/far/file.txt")
    clear_sentence(done)
    hold(not list(house.local.iterdir()), "something was made locally:", list(house.local.iterdir()))


@scenario
def malformed_addresses(house):
    """Half an address is an error, not a guess."""
    for address in ("scdc+tcp://", "scdc+tcp://host:notaport/far", "scdc+tcp://host:99999/far", "scdc+uds://", "scdc+uds://rel/far%zz"):
        clear_sentence(house.cli("cat", address))
    clear_sentence(house.cli("run", "--map", "/far", "--", "true"))
    clear_sentence(house.cli("run", "--map", "=scdc:///x", "--", "true"))


@scenario
def unreachable_port(house):
    """Nobody listens: the sentence names the address, and a program gets a clear error at once."""
    clear_sentence(house.cli("cat", "scdc+tcp://127.0.0.1:9/far/file.txt", seconds_max=30), "127.0.0.1:9")
    done = house.run("scdc+tcp://127.0.0.1:9/far", "cat /far/file.txt", seconds_max=30)
    clear_sentence(done, "file.txt")


@scenario
def unreachable_socket(house):
    """No socket there."""
    clear_sentence(house.cli("ls", f"scdc+uds://{house.scratch}/absent.sock/far", seconds_max=30), "absent.sock")
    clear_sentence(house.run(f"scdc+uds://{house.scratch}/absent.sock/far", "cat /far/file.txt", seconds_max=30), "file.txt")


@scenario
def unknown_host(house):
    """A host without an address (RFC 6761 reserves .invalid)."""
    clear_sentence(house.cli("cat", "scdc+tcp://no-such-host.invalid/far/file.txt", seconds_max=45), "no-such-host.invalid")


@scenario
def missing_names(house):
    """Missing file, missing export, directory as file, file as directory."""
    uri = house.serve().uri
    clear_sentence(house.cli("cat", f"{uri}/far/absent"), "absent", ("No such file", "not exist", "not found"))
    clear_sentence(house.cli("cat", f"{uri}/nowhere/file.txt"), "nowhere")
    clear_sentence(house.cli("cat", f"{uri}/far/dir"), "dir", "directory")
    clear_sentence(house.cli("ls", f"{uri}/far/file.txt/x"), "file.txt")
    clear_sentence(house.cli("rm", f"{uri}/far/absent"), "absent")
    clear_sentence(house.cli("mkdir", f"{uri}/far/dir"), "dir", "exist")
    clear_sentence(house.cli("cp", f"{uri}/far/absent", "here"), "absent")
    clear_sentence(house.cli("stat", f"{uri}/far/absent"), "absent")
    hold(not list(house.local.iterdir()), "a failed copy left something:", list(house.local.iterdir()))


@scenario
def missing_names_in_a_program(house):
    """The same through a program: the errno a local file would give."""
    uri = house.serve().uri + "/far"
    for script, words in (("cat /far/absent", "No such file or directory"), ("cat /far/dir", "Is a directory"),
                          ("cat /far/file.txt/x", "Not a directory"), ("echo x > /far/absent/new", "No such file or directory"),
                          ("mkdir /far/dir", "File exists"), ("rmdir /far/dir", "not empty"), ("cd /far/file.txt", "Not a directory")):
        clear_sentence(house.run(uri, script), words)
    clear_sentence(house.run(uri + "-absent", "cat /far/file.txt"), "No such file or directory")


@scenario
def long_paths(house):
    """4,096 bytes of path are ENAMETOOLONG, in one name or in many."""
    uri = house.serve().uri
    clear_sentence(house.cli("cat", f"{uri}/far/{'n' * 300}"), "too long")
    clear_sentence(house.cli("cat", f"{uri}/far/{'n/' * 2100}x"))
    clear_sentence(house.run(f"{uri}/far", f"cat /far/{'n/' * 2100}x"), "too long")
    clear_sentence(house.run(f"{uri}/far", f"cat /far/{'n' * 256}"), "too long")


@scenario
def percent_and_odd_names(house):
    """Names with spaces, percent signs and newlines arrive as they are."""
    uri = house.serve().uri
    for name in ("a b", "100%", "new\nline", "ü", "q?x#y"):
        (house.served / name).write_text(f"in {name}")
        done = house.run(f"{uri}/far", f"cat \"/far/{name}\"")
        hold(done.returncode == 0 and done.stdout == f"in {name}", repr(name), done.stderr)
        done = house.cli("cat", f"{uri}/far/{name}")
        hold(done.stdout == f"in {name}", name, done.stdout, done.stderr)
