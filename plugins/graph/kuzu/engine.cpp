// The library that plugins/graph/internal/kuzu loads: a C interface to Kuzu
// whose functions pass pointers and integers only, so that Go calls them
// without cgo. No exception leaves it. Parameters and results are passed in the
// encoding of codec.h.
//
// scripts/kuzu compiles it against the headers of Kuzu's source package and
// links it to the library of the released package.
#include <csignal>
#include <cstring>
#include <optional>
#include <string>

#include "binder/binder.h"
#include "budget.h"
#include "codec.h"
#include "filter.h"
#include "guard.h"
#include "log.h"
#include "lookup.h"
#include "main/kuzu.h"
#include "null.h"
#include "storage/buffer_manager/buffer_manager.h"
#include "storage/buffer_manager/memory_manager.h"
#include "words.h"

using namespace kuzu::main;
using kuzu::common::Value;

namespace tea {

// The codes of a failure; failure.go has the same.
enum Code : int32_t { Ok = 0, Query = 1, Refused = 2, Interrupted = 3, Memory = 4, File = 5, Internal = 6, Parameter = 7, Damaged = 8 };

// code returns what kind of failure a message of the engine reports. The engine
// puts the class of the exception in front and keeps nothing else of it.
Code code(const std::string& message) {
    static const std::pair<const char*, Code> classes[] = {
        {"Interrupted", Interrupted},
        {"Buffer manager exception: ", Memory},
        {"std::bad_alloc", Memory},
        {"IO exception: ", File},
        {"Storage exception: ", File},
        {"Checkpoint exception: ", File},
        {"Internal exception: ", Internal},
        {"Runtime exception: Buffer manager exception: ", Memory},
    };
    for (auto& [prefix, code] : classes) {
        if (message.rfind(prefix, 0) == 0) {
            return code;
        }
    }
    return Query;
}

// report copies data into a buffer of the caller's, which tea_kuzu_free frees.
void report(const std::string& data, char** out, int64_t* size) {
    *out = static_cast<char*>(malloc(data.size() + 1));
    if (*out == nullptr) {
        *size = 0;
        return;
    }
    memcpy(*out, data.data(), data.size());
    *size = static_cast<int64_t>(data.size());
}

// guarded runs f and turns each exception into a code and a message.
template<typename F>
int32_t guarded(char** out, int64_t* size, F f) noexcept {
    *out = nullptr;
    *size = 0;
    try {
        try {
            return f();
        } catch (const RefusedException& e) {
            report(e.what(), out, size);
            return Refused;
        } catch (const ParameterException& e) {
            report(e.what(), out, size);
            return Parameter;
        } catch (const DamagedException& e) {
            report(e.what(), out, size);
            return Damaged;
        } catch (const std::bad_alloc&) {
            report("out of memory", out, size);
            return Memory;
        } catch (const std::exception& e) {
            report(e.what(), out, size);
            return code(e.what());
        } catch (...) {
            report("unknown exception", out, size);
            return Internal;
        }
    } catch (...) {
        return Internal;
    }
}

// BlockedSignals blocks all signals of the thread. The engine's threads inherit
// that, so that Go's handlers do not run on them.
class BlockedSignals {
public:
    BlockedSignals() {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
    }
    ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before, nullptr); }

private:
    sigset_t before;
};

// deep runs f on a thread with a stack for the recursion of the parser and the
// planner, whose depth is that of the query, and rethrows what f throws.
template<typename F>
void deep(F f) {
    struct Call {
        F& f;
        std::exception_ptr failure;
    } call{f, nullptr};
    auto run = [](void* p) -> void* {
        auto call = static_cast<Call*>(p);
        try {
            call->f();
        } catch (...) {
            call->failure = std::current_exception();
        }
        return nullptr;
    };
    constexpr size_t stack = size_t{256} << 20; // addresses; only what is used takes memory
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack);
    BlockedSignals blocked;
    pthread_t thread;
    auto failed = pthread_create(&thread, &attributes, run, &call);
    pthread_attr_destroy(&attributes);
    if (failed) {
        throw std::bad_alloc();
    }
    pthread_join(thread, nullptr);
    if (call.failure) {
        std::rethrow_exception(call.failure);
    }
}

// Opened is a database and the file system of its log, which the database owns.
struct Opened {
    std::unique_ptr<Database> database;
    Log* log;
};

// nonEvictable returns what a database's buffers have that cannot be evicted,
// such as the updates since the last checkpoint. The engine has no function for it.
uint64_t nonEvictable(kuzu::storage::BufferManager& buffers);

template<auto Member>
struct Exposed {
    friend uint64_t nonEvictable(kuzu::storage::BufferManager& buffers) { return buffers.*Member; }
};

template struct Exposed<&kuzu::storage::BufferManager::nonEvictableMemory>;

struct Statement {
    std::unique_ptr<PreparedStatement> prepared;
    bool restricted;
};

// Limits of one run.
struct Limits {
    uint64_t rows;
    uint64_t bytes;
};

// Flags of a result, its first byte.
constexpr char CutByRows = 1;
constexpr char CutByBytes = 2;

// encode returns a result as far as the limits allow.
std::string encode(QueryResult& result, Limits limits) {
    Writer rows;
    char flags = 0;
    uint32_t count = 0;
    while (result.hasNext()) {
        if (count == limits.rows) {
            flags = CutByRows;
            break;
        }
        auto before = rows.size();
        auto tuple = result.getNext();
        for (uint32_t i = 0; i < tuple->len(); i++) {
            rows.value(*tuple->getValue(i));
        }
        if (rows.size() > limits.bytes) {
            rows.truncate(before);
            flags = CutByBytes;
            break;
        }
        count++;
    }
    return table(result.getColumnNames(), count, rows, flags).take();
}

void check(const QueryResult& result) {
    if (!result.isSuccess()) {
        throw std::runtime_error(result.getErrorMessage());
    }
}

} // namespace tea

using namespace tea;

// Connected is a connection and whether its caller has canceled a statement.
struct Connected : Connection {
    using Connection::Connection;
    std::atomic<bool> canceled = false;
};

#define TEA_API extern "C" __attribute__((visibility("default")))

static kuzu::main::ClientContext* context(void* connection) {
    return static_cast<Connected*>(connection)->getClientContext();
}

// The library does not export this method, which the header uses.
std::vector<kuzu::binder::BoundDeleteInfo> kuzu::binder::BoundDeleteClause::getInfos(const std::function<bool(const BoundDeleteInfo& info)>& wanted) const {
    std::vector<BoundDeleteInfo> found;
    for (auto& info : infos) {
        if (wanted(info)) {
            found.push_back(info.copy());
        }
    }
    return found;
}

// planning is what a query of a workflow can allocate while it is planned.
constexpr size_t planning = size_t{128} << 20;

// tea_kuzu_interface returns the version of this interface.
TEA_API int64_t tea_kuzu_interface() {
    return 3;
}

TEA_API void tea_kuzu_free(void* p) {
    free(p);
}

// tea_kuzu_open opens or creates the database in a file. Queries of its
// connections reach no other file than the database's.
TEA_API int32_t tea_kuzu_open(const char* path, int64_t pool, int64_t threads, int64_t largest, void** database, char** out, int64_t* size) {
    return guarded(out, size, [&]() -> int32_t {
        // The caller makes the checkpoints, when no query is running: the
        // engine's own fail the commit if a query takes longer than 5 s.
        SystemConfig config(pool, threads, true, false, largest, /*autoCheckpoint=*/false, 16777216, /*forceCheckpointOnClose=*/false);
        BlockedSignals blocked;
        auto log = std::make_unique<Log>(std::string(path) + ".wal");
        log->recover();
        auto opened = std::make_unique<Opened>();
        {
            Opening reads(*log);
            opened->database = std::make_unique<Database>(path, config);
        }
        typeNulls(*opened->database);
        opened->database->registerFileSystem(std::make_unique<OnlyDatabase>(path));
        opened->log = log.get();
        opened->database->registerFileSystem(std::move(log));
        *database = opened.release();
        return Ok;
    });
}

// tea_kuzu_close closes the database without a checkpoint. What was not written
// to the log stays unwritten.
TEA_API int32_t tea_kuzu_close(void* database, char** out, int64_t* size) {
    return guarded(out, size, [&]() -> int32_t {
        auto opened = static_cast<Opened*>(database);
        opened->log->discard();
        delete opened;
        return Ok;
    });
}

TEA_API int32_t tea_kuzu_connect(void* database, int64_t threads, void** connection, char** out, int64_t* size) {
    return guarded(out, size, [&]() -> int32_t {
        auto made = std::make_unique<Connected>(static_cast<Opened*>(database)->database.get());
        made->setMaxNumThreadForExec(threads);
        *connection = made.release();
        return Ok;
    });
}

TEA_API void tea_kuzu_disconnect(void* connection) {
    try {
        delete static_cast<Connected*>(connection);
    } catch (...) {
    }
}

// tea_kuzu_memory returns the bytes of the buffers that are in use until the next
// checkpoint.
TEA_API int64_t tea_kuzu_memory(void* connection) {
    return static_cast<int64_t>(nonEvictable(*context(connection)->getMemoryManager()->getBufferManager()));
}

// tea_kuzu_interrupt ends the query that the connection executes now. One that
// is still being planned begins all the same: the caller calls again. The next
// call of the connection can notice it too, so the caller closes the connection.
TEA_API void tea_kuzu_interrupt(void* connection) {
    auto c = static_cast<Connected*>(connection);
    c->canceled = true;
    c->interrupt();
}

static Parameters shared(Reader reader) {
    Parameters all;
    for (auto& [name, value] : reader.parameters()) {
        all.emplace(name, std::move(value));
    }
    return all;
}

// changes throws if a query changes what it may not.
static void changes(kuzu::main::ClientContext* context, const kuzu::parser::Statement& statement, Reader parameters) {
    kuzu::binder::Binder binder(context);
    binder.setInputParameters(shared(parameters));
    permitChanges(*binder.bind(statement));
}

// tea_kuzu_prepare parses and plans a statement. A query of a workflow has the
// access to read or write, which guard.h describes; one that writes is in a
// transaction.
TEA_API int32_t tea_kuzu_prepare(void* connection, const char* query, int64_t length, int64_t access, const char* parameters, int64_t parameters_length, void** statement, char** out, int64_t* size) {
    return guarded(out, size, [&]() -> int32_t {
        auto restricted = static_cast<Access>(access) != Access::All;
        auto plan = [&] {
            std::optional<Budget> budget;
            std::shared_ptr<kuzu::parser::Statement> parsed;
            std::string_view text(query, length);
            if (restricted) {
                budget.emplace(planning, static_cast<Connected*>(connection)->canceled);
                parsed = permit(text, static_cast<Access>(access));
            }
            Reader passed(parameters, parameters_length);
            auto prepared = static_cast<Connected*>(connection)->prepareWithParams(text, Reader(passed).parameters());
            if (!prepared->isSuccess()) {
                throw std::runtime_error(prepared->getErrorMessage());
            }
            if (restricted) {
                requireParameters(prepared->getParameterMapUnsafe(), passed);
            }
            if (restricted && !prepared->isReadOnly() && parsed->getStatementType() == kuzu::common::StatementType::QUERY) {
                if (static_cast<Access>(access) != Access::Write) {
                    throw RefusedException("the query writes; set read_only: false");
                }
                changes(context(connection), *parsed, passed);
            }
            *statement = new Statement{std::move(prepared), restricted};
        };
        restricted ? deep(plan) : plan();
        return Ok;
    });
}

TEA_API void tea_kuzu_finalize(void* statement) {
    try {
        auto s = static_cast<Statement*>(statement);
        auto drop = [&] { delete s; };
        s->restricted ? deep(drop) : drop();
    } catch (...) {
    }
}

// tea_kuzu_run executes a statement; timeout is in milliseconds, 0 = none.
TEA_API int32_t tea_kuzu_run(void* connection, void* statement, const char* parameters, int64_t length, int64_t timeout, int64_t rows, int64_t bytes, char** out, int64_t* size) {
    return guarded(out, size, [&]() -> int32_t {
        auto c = static_cast<Connected*>(connection);
        auto s = static_cast<Statement*>(statement);
        c->setQueryTimeOut(timeout);
        std::unique_ptr<QueryResult> result;
        auto execute = [&] {
            std::optional<Budget> budget;
            if (s->restricted) {
                budget.emplace(planning, static_cast<Connected*>(connection)->canceled);
            }
            result = c->executeWithParams(s->prepared.get(), Reader(parameters, length).parameters());
        };
        s->restricted ? deep(execute) : execute(); // the engine plans a statement at each execution
        check(*result);
        report(encode(*result, Limits{static_cast<uint64_t>(rows), static_cast<uint64_t>(bytes)}), out, size);
        return Ok;
    });
}

// tea_kuzu_execute executes a statement of the plugin's own that has neither
// parameters nor a result: transactions, tables, checkpoints.
TEA_API int32_t tea_kuzu_execute(void* connection, const char* query, int64_t length, char** out, int64_t* size) {
    return guarded(out, size, [&]() -> int32_t {
        auto result = static_cast<Connected*>(connection)->query(std::string_view(query, length));
        for (auto r = result.get(); r != nullptr; r = r->nextQueryResult.get()) {
            check(*r);
        }
        return Ok;
    });
}

// tea_kuzu_entities returns columns of the entities with some keys. Both lists
// are encoded as a number and texts.
TEA_API int32_t tea_kuzu_entities(void* connection, const char* arguments, int64_t length, char** out, int64_t* size) {
    return guarded(out, size, [&]() -> int32_t {
        Reader reader(arguments, length);
        auto keys = reader.texts();
        auto columns = reader.texts();
        report(entities(context(connection), keys, columns).take(), out, size);
        return Ok;
    });
}

// tea_kuzu_adjacent returns columns of the relations of the entities with some
// keys; the lists are keys, columns and types.
TEA_API int32_t tea_kuzu_adjacent(void* connection, const char* arguments, int64_t length, int64_t forward, int64_t backward, int64_t ever, int64_t at, int64_t most, char** out, int64_t* size) {
    return guarded(out, size, [&]() -> int32_t {
        Reader reader(arguments, length);
        auto keys = reader.texts();
        auto columns = reader.texts();
        auto types = reader.texts();
        Following following{forward != 0, backward != 0, {types.begin(), types.end()}, ever != 0, at, static_cast<uint64_t>(most)};
        report(adjacent(context(connection), keys, columns, following).take(), out, size);
        return Ok;
    });
}

// tea_kuzu_having returns the entities of a namespace that have some words; the
// lists are the beginning of the namespace's keys, words and types.
TEA_API int32_t tea_kuzu_having(void* connection, const char* arguments, int64_t length, int64_t all, int64_t limit, char** out, int64_t* size) {
    return guarded(out, size, [&]() -> int32_t {
        Reader reader(arguments, length);
        auto start = reader.texts();
        auto words = reader.texts();
        auto types = reader.texts();
        report(having(context(connection), Searching{start.at(0), words, {types.begin(), types.end()}, all != 0, static_cast<uint64_t>(limit)}).take(), out, size);
        return Ok;
    });
}
