// Objects with static storage that code without the GIL uses, with constructors and destructors.
// They know nothing of pulsar_ml.
#pragma once
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace statics {

// Constructed when the module is loaded.
struct Names {
    std::map<std::string, long> of{{"one", 1}, {"two", 2}};
    std::vector<long> squares;
    Names() { for (long i = 0; i < 8; i++) squares.push_back(i * i); }
};
inline Names names;
inline std::mutex guard;
inline std::atomic<long> lookups{0};

inline long look_up(long i) {
    lookups.fetch_add(1, std::memory_order_relaxed);
    return names.squares[static_cast<size_t>(i)] + names.of.at(i % 2 ? "one" : "two");
}

// Constructed by the first thread that comes by.
struct Table {
    std::vector<long> values;
    std::atomic<long> readers{0};
    explicit Table(long size) : values(static_cast<size_t>(size), 3) {}
    long at(long i) { readers++; return values[static_cast<size_t>(i)]; }
};
inline Table &table() { static Table once(16); return once; }
inline long add_in_thread(long n) { static thread_local std::vector<long> mine{5}; return mine[0] += n; }

// The same by hand: the pointer is no atomic, so a second thread may see it before the table.
inline Table *by_hand = nullptr;
inline Table &table_by_hand() {
    if (by_hand == nullptr) {
        std::lock_guard<std::mutex> held(guard);
        if (by_hand == nullptr) by_hand = new Table(16);
    }
    return *by_hand;
}
inline void drop_table() { delete by_hand; by_hand = nullptr; }

}  // namespace statics
