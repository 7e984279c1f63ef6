// The fuzz driver: runs one target on mutated bodies for some seconds, or on files as they are.
//
//   driver --target NAME [--seconds S] [--executions N] [--seed N] [--corpus FOLDER] [--crashes FOLDER]
//   driver --target NAME --replay FILE --choice HEX
//   driver --list
//
// The last line of a run is JSON. Exit status: 0 all laws held, 1 something was found, 2 wrong arguments.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include "engine.hpp"

namespace fuzz {
namespace {

constexpr int PATIENCE = 10;           // seconds between two looks whether an execution has ended
constexpr int LOOKS = 3;               // that find the same one; a process that was paused is looked at when it goes on
constexpr std::uint64_t CHOICES = 24;  // each file of the corpus is first run with so many

std::string crash_folder = ".";
std::string current_target;
std::string current_body;
std::uint64_t current_choice = 0;
std::atomic<std::uint64_t> executions{0};
std::uint64_t executions_at_alarm = 0;
int looks = 0;

std::string hex(std::uint64_t value) {
    char text[24];
    std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(value));
    return text;
}

// Called when the process is about to die, so with as little of it as possible.
void keep_input() {
    static bool kept = false;
    if (kept) return;
    kept = true;
    const std::string path = crash_folder + "/" + current_target + "-" + hex(current_choice);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (file < 0) return;
    const ssize_t written = write(file, current_body.data(), current_body.size());
    close(file);
    const std::string message = "\ninput (" + std::to_string(written) + " bytes) kept as " + path + "\n";
    if (write(STDERR_FILENO, message.data(), message.size()) < 0) _exit(1);
}

void on_signal(int signal) {
    keep_input();
    const char message[] = "the process got a deadly signal\n";
    if (signal != SIGABRT && write(STDERR_FILENO, message, sizeof message - 1) < 0) _exit(1);
    _exit(1);
}

void on_alarm(int) {
    const std::uint64_t now = executions;
    looks = now == executions_at_alarm ? looks + 1 : 0;
    if (looks == LOOKS) {
        keep_input();
        const char message[] = "an execution took too long\n";
        if (write(STDERR_FILENO, message, sizeof message - 1) < 0) _exit(1);
        _exit(1);
    }
    executions_at_alarm = now;
    alarm(PATIENCE);
}

void on_exception() {
    try {
        if (const std::exception_ptr thrown = std::current_exception()) std::rethrow_exception(thrown);
        fail("the program was ended");
    } catch (const std::exception& error) {
        fail(std::string("an exception got out: ") + error.what());
    } catch (...) {
        fail("an exception got out");
    }
}

void execute(const Target& target, const std::string& body, std::uint64_t choice) {
    current_body = body;
    current_choice = choice;
    forget_path();
    target.run(body, Random(choice));
    ++executions;
}

std::string content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

std::vector<std::string> corpus_of(const std::string& folder, const std::string& target) {
    std::vector<std::filesystem::path> paths;
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder + "/" + target, none))
        paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<std::string> corpus{""};
    for (const auto& path : paths) corpus.push_back(content(path));
    return corpus;
}

double since(std::chrono::steady_clock::time_point start) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void explore(const Target& target, double seconds, std::uint64_t most, std::uint64_t seed, const std::string& folder) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<std::string> corpus = corpus_of(folder, target.name);
    const std::size_t initial = corpus.size();
    for (std::size_t i = 0; i < initial; ++i) {
        for (std::uint64_t choice = 0; choice < CHOICES && executions < most; ++choice)
            execute(target, corpus[i], choice);
        is_new_path();
    }
    Random random(seed);
    double last_report = 0.0;
    while (executions < most) {
        if (executions % 64 == 0) {
            const double now = since(start);
            if (now >= seconds) break;
            if (now - last_report >= 10.0) {
                last_report = now;
                std::fprintf(stderr, "  %s: %llu executions, %.0f s, %zu bodies, %zu branches\n", target.name,
                             static_cast<unsigned long long>(executions), now, corpus.size(), branches_seen());
            }
        }
        // Half of the time from the newest bodies: they reached what no other did.
        const std::size_t recent = std::min<std::size_t>(corpus.size(), 32);
        const std::size_t at =
            random.one_in(2) ? corpus.size() - 1 - random.below(recent) : random.below(corpus.size());
        const std::string body = mutated(corpus[at], target.tokens, corpus, random);
        execute(target, body, random.next());
        if (is_new_path() && corpus.size() < 20000) corpus.push_back(body);
    }
    std::printf("{\"target\": \"%s\", \"executions\": %llu, \"seconds\": %.2f, \"bodies\": %zu, \"branches\": %zu}\n",
                target.name, static_cast<unsigned long long>(executions), since(start), corpus.size(), branches_seen());
}

}  // namespace

void fail(const std::string& what) {
    std::fprintf(stderr, "\n%s, choice %s: %s\n", current_target.c_str(), hex(current_choice).c_str(), what.c_str());
    keep_input();
    _exit(1);
}

const std::vector<Target>& targets() {
    static const std::vector<Target> all = {vw_target(),       libsvm_target(), table_target(), jsonl_target(),
                                            number_target(),   label_target(),  hash_target(),  words_target(),
                                            learning_target(), canary_target()};
    return all;
}

}  // namespace fuzz

// The sanitizers end the process by a signal, so that the input is kept whichever of them speaks.
extern "C" const char* __asan_default_options() {
    return "abort_on_error=1:detect_stack_use_after_return=1:detect_leaks=1";
}
extern "C" const char* __ubsan_default_options() { return "abort_on_error=1:print_stacktrace=1"; }

int main(int count, char** words) {
    using namespace fuzz;
    std::map<std::string, std::string> options = {
        {"--seconds", "10"}, {"--seed", "0"}, {"--executions", "-1"}, {"--corpus", "."}};
    for (int i = 1; i < count; i += 2) options[words[i]] = i + 1 < count ? words[i + 1] : "";
    if (options.count("--list") != 0) {
        for (const Target& target : targets()) {
            if (target.name != std::string("canary")) std::printf("%s\n", target.name);
        }
        return 0;
    }
    current_target = options["--target"];
    if (options.count("--crashes") != 0) crash_folder = options["--crashes"];
    const auto& all = targets();
    const auto target = std::find_if(all.begin(), all.end(), [](const Target& t) { return t.name == current_target; });
    if (target == all.end()) {
        std::fprintf(stderr, "no such target: '%s'; --list shows them\n", current_target.c_str());
        return 2;
    }
    std::set_terminate(on_exception);
    for (const int number : {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL}) signal(number, on_signal);
    signal(SIGALRM, on_alarm);
    alarm(PATIENCE);
    if (options.count("--replay") != 0) {
        execute(*target, content(options["--replay"]), std::strtoull(options["--choice"].c_str(), nullptr, 16));
        std::printf("no law was broken\n");
        return 0;
    }
    explore(*target, std::strtod(options["--seconds"].c_str(), nullptr),
            std::strtoull(options["--executions"].c_str(), nullptr, 10),
            std::strtoull(options["--seed"].c_str(), nullptr, 10), options["--corpus"]);
    return 0;
}
