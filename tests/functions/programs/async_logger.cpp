// Asynchronous logger: callers append to a buffer, a background thread writes it out.
#include <cassert>
#include <condition_variable>
#include <iostream>
#include <mutex>
#include <sstream>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

class logger {
  public:
    explicit logger(std::ostream &out, bool flush_at_end = true)
        : out(out), flush_at_end(flush_at_end), writer([this](std::stop_token stop) { run(stop); })
    {
    }

    ~logger()
    {
        writer.request_stop();
        writer.join();
    }

    void log(std::string line)
    {
        {
            std::lock_guard lock(mutex);
            pending.push_back(std::move(line));
        }
        arrived.notify_one();
    }

  private:
    void run(std::stop_token stop)
    {
        std::vector<std::string> lines;
        while (!stop.stop_requested()) {
            {
                std::unique_lock lock(mutex);
                arrived.wait(lock, stop, [this] { return !pending.empty(); });
                lines.swap(pending);
            }
            write(lines);
        }
        if (flush_at_end) // lines that came after the last look
            write(pending);
    }

    void write(std::vector<std::string> &lines)
    {
        for (const auto &line : lines)
            out << line << '\n';
        lines.clear();
    }

    std::ostream &out;
    const bool flush_at_end;
    std::mutex mutex;
    std::condition_variable_any arrived;
    std::vector<std::string> pending;
    std::jthread writer;
};

static void two_lines(bool flush_at_end)
{
    std::ostringstream out;
    {
        logger log(out, flush_at_end);
        std::jthread other([&] { log.log("from the other thread"); });
        log.log("from the main thread");
    }
    const std::string text = out.str();
    assert(text.find("from the other thread\n") != std::string::npos);
    assert(text.find("from the main thread\n") != std::string::npos);
}

void test_logger() { two_lines(true); }

void test_logger_buggy() { two_lines(false); }
