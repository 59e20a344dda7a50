// A file of a service as a C++ object: closed when it goes out of scope, errors as exceptions.
#include <fcntl.h>

#include <cerrno>
#include <iostream>
#include <memory>
#include <numeric>
#include <string>
#include <system_error>
#include <vector>

#include <sluice.h>

class File {
public:
    File(const std::string &name, int flags) : file(sluice_open(name.c_str(), flags, 0644), sluice_close) { check(file != nullptr); }

    template <typename T> void write(const std::vector<T> &values, std::int64_t at)
    {
        const auto bytes = values.size() * sizeof(T);
        check(sluice_pwrite(file.get(), values.data(), bytes, at) == static_cast<ssize_t>(bytes));
    }

    template <typename T> std::vector<T> read(std::size_t count, std::int64_t at)
    {
        std::vector<T> values(count);
        const auto bytes = sluice_pread(file.get(), values.data(), count * sizeof(T), at);
        check(bytes >= 0);
        values.resize(static_cast<std::size_t>(bytes) / sizeof(T));
        return values;
    }

    void sync() { check(sluice_sync(file.get()) == 0); }

private:
    static void check(bool fine)
    {
        if (!fine)
            throw std::system_error(errno, std::generic_category(), sluice_error());
    }

    std::unique_ptr<sluice_file, int (*)(sluice_file *)> file;
};

int main(int argc, char **argv)
try {
    const std::string directory = argc > 1 ? argv[1] : "scdc+uds://default/store";
    const std::string name = directory + "/from-cpp.dat";
    std::vector<int> numbers(100000);
    std::iota(numbers.begin(), numbers.end(), 0);
    {
        File file(name, O_RDWR | O_CREAT | O_TRUNC);
        file.write(numbers, 0);
        file.sync();
    }
    const auto read = File(name, O_RDONLY).read<int>(200000, 0);
    std::cout << "the same again: " << (read == numbers ? "yes" : "no") << ", sum "
              << std::accumulate(read.begin(), read.end(), 0LL) << '\n';
    sluice_remove(name.c_str());
    try {
        File(name, O_RDONLY);
    } catch (const std::system_error &error) {
        std::cout << "gone: " << (error.code().value() == ENOENT ? "yes" : "no") << '\n';
    }
} catch (const std::exception &error) {
    std::cerr << error.what() << '\n';
    return 1;
}
