// C++ streams: files read, written, positioned; directories through std::filesystem.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

namespace fs = std::filesystem;

static void streams(const fs::path& d) {
    std::ifstream text(d / "text.txt");
    if (!text) throw std::runtime_error("cannot open text.txt");
    std::string line, word;
    std::size_t lines = 0, bytes = 0;
    while (std::getline(text, line)) lines++, bytes += line.size();
    std::cout << lines << ' ' << bytes << ' ' << text.eof() << '\n';
    text.clear();
    text.seekg(100);
    text >> word;
    std::cout << word << ' ' << text.tellg() << ' ' << text.peek() << ' ' << char(text.get()) << '\n';
    text.seekg(-20, std::ios::end);
    std::getline(text, line);
    std::cout << line << '\n';

    std::ifstream numbers(d / "numbers.txt");
    long sum = 0, count = 0;
    for (long n; numbers >> n;) sum += n, count++;
    std::cout << count << ' ' << sum << '\n';

    std::ofstream out(d / "out.txt");
    for (int i = 0; i < 20000; i++) out << i << ' ' << i / 7.0 << '\n';
    out << std::flush;
    std::cout << fs::file_size(d / "out.txt") << ' ' << out.tellp() << '\n';
    out.close();
    if (!out) throw std::runtime_error("writing failed");
    std::ofstream(d / "out.txt", std::ios::app) << "appended\n";

    std::fstream both(d / "data.bin", std::ios::in | std::ios::out | std::ios::binary);
    both.seekp(5000);
    both.write("WRITTEN", 7);
    both.seekg(4998);
    char around[11];
    both.read(around, 11);
    std::cout << std::string(around + 2, 7) << ' ' << both.tellg() << '\n';
    for (int at = 0; at < 1000000; at += 123457) {
        both.seekp(at);
        both.put('*');
        both.seekg(at + 1);
        std::cout << both.get() << ' ';
    }
    std::cout << '\n';
}

static void binary(const fs::path& d) {
    std::ifstream in(d / "big.bin", std::ios::binary);
    std::vector<char> all((std::istreambuf_iterator<char>(in)), {});
    std::cout << all.size() << '\n';
    std::ofstream(d / "big-copy", std::ios::binary).write(all.data(), all.size());
    std::ifstream again(d / "big-copy", std::ios::binary | std::ios::ate);
    std::cout << again.tellg() << '\n';
    std::ofstream piped(d / "piped", std::ios::binary);
    in.clear();
    in.seekg(1 << 20);
    piped << in.rdbuf();
    piped.close();
    std::cout << fs::file_size(d / "piped") << '\n';
    std::ifstream block(d / "data.bin", std::ios::binary);
    std::vector<char> large(1 << 20);
    block.rdbuf()->pubsetbuf(large.data(), large.size());
    char b[100];
    std::size_t total = 0;
    while (block.read(b, sizeof b) || block.gcount()) total += block.gcount();
    std::cout << total << '\n';
}

static void errors(const fs::path& d) {
    std::ifstream absent(d / "absent");
    std::cout << bool(absent) << '\n';
    std::ofstream directory(d / "tree");
    std::cout << bool(directory) << '\n';
    std::error_code error;
    (void)fs::file_size(d / "absent", error);
    std::cout << error.value() << '\n';
    fs::create_directory(d / "text.txt" / "x", error);
    std::cout << error.value() << '\n';
}

static void filesystem(const fs::path& d) {
    std::vector<std::string> names;
    for (const auto& e : fs::recursive_directory_iterator(d))
        names.push_back(e.path().string().substr(d.string().size()) + (e.is_directory() ? "/" : "") + (e.is_symlink() ? "@" : ""));
    std::sort(names.begin(), names.end());
    for (const auto& n : names) std::cout << n << '\n';
    fs::create_directories(d / "p/q/r");
    fs::copy(d / "tree", d / "copied", fs::copy_options::recursive);
    fs::copy_file(d / "big.bin", d / "big2.bin");
    fs::rename(d / "copied", d / "renamed");
    fs::resize_file(d / "big2.bin", 12345);
    fs::permissions(d / "big2.bin", fs::perms::owner_read);
    fs::create_symlink("text.txt", d / "sym");
    fs::create_hard_link(d / "text.txt", d / "hard");
    std::cout << fs::read_symlink(d / "sym").string() << ' ' << fs::equivalent(d / "sym", d / "hard") << ' '
              << fs::hard_link_count(d / "hard") << ' ' << fs::remove_all(d / "p") << ' ' << fs::exists(d / "dangling") << ' '
              << fs::is_empty(d / "empty") << ' ' << (fs::space(d).capacity > 0) << '\n';
    std::cout << fs::canonical(d / "dirlink/a/../b").string() << '\n' << fs::weakly_canonical(d / "no/such").string() << '\n';
    fs::current_path(d / "tree");
    std::cout << fs::exists("a/one.txt") << ' ' << fs::absolute("a").string() << '\n';
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    std::string part = argv[1];
    fs::path d = argv[2];
    try {
        if (part == "streams") streams(d);
        else if (part == "binary") binary(d);
        else if (part == "errors") errors(d);
        else if (part == "filesystem") filesystem(d);
        else return 2;
    } catch (const std::exception& e) {
        std::cerr << e.what() << '\n';
        return 1;
    }
}
