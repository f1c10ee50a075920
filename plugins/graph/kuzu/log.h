// The file of the write-ahead log, with a checksum for each commit. The engine's
// own log has none: it drops what follows a damaged record, or crashes. Its file
// also writes again when it is destroyed after a write has failed, which ends the
// process if that one fails too; and after a failure it goes on with what was left
// in its buffer.
//
// The file has a header and a frame for each commit or checkpoint:
//
//	header  the magic, and two marks {end of the acknowledged frames, checksum}
//	frame   {size of the data, checksum of the frame before, the size, and the data}, data
//
// A mark is written after each commit, without a sync, by turns. So a frame before
// the mark that is not valid is damage, and one after it is a commit that a crash
// has interrupted. After a power failure the mark can be one commit behind.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>

#include "checksum.h"
#include "common/exception/io.h"
#include "common/file_system/file_info.h"
#include "common/file_system/virtual_file_system.h"

namespace tea {

// DamagedException says what is wrong with the log.
class DamagedException : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

// Log is a file system with one file. After a failed write or sync all others
// fail, until discard is called: then they do nothing.
class Log final : public kuzu::common::FileSystem {
    using FileInfo = kuzu::common::FileInfo;
    using Context = kuzu::main::ClientContext;

    struct File final : FileInfo {
        File(Log* log, int fd) : FileInfo{log->path, log}, fd{fd} {}
        ~File() override {
            close(fd);
            std::string().swap(static_cast<Log*>(fileSystem)->recovered);
        }
        const int fd;
    };

    struct Mark {
        uint64_t end;
        uint32_t sum;
        uint32_t unused;

        explicit Mark(uint64_t end) : end{end}, sum{checksum(0, &end, sizeof end)}, unused{0} {}
        bool valid() const { return sum == checksum(0, &end, sizeof end); }
    };

    struct Header {
        char magic[8] = {'t', 'e', 'a', ' ', 'l', 'o', 'g', '1'};
        Mark marks[2] = {Mark(sizeof(Header)), Mark(sizeof(Header))};
    };

    struct Frame {
        uint32_t size;
        uint32_t sum;

        static uint32_t sumOf(uint32_t before, uint32_t size, const char* data) { return checksum(checksum(before, &size, sizeof size), data, size); }
    };

public:
    explicit Log(std::string path) : path{std::move(path)} {}

    void discard() { discarded = true; }

    // recover reads what a crash has left. It cuts off a frame that was not
    // acknowledged, and throws a DamagedException for any other that is not valid.
    void recover() {
        auto fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
        if (fd < 0) {
            if (errno == ENOENT) {
                return;
            }
            fail("open");
        }
        File file(this, fd);
        std::string all(std::filesystem::file_size(path), '\0');
        read(fd, all.data(), all.size(), 0);
        auto acknowledged = readHeader(all);
        while (all.size() - end >= sizeof(Frame)) {
            Frame frame;
            memcpy(&frame, &all[end], sizeof frame);
            auto data = &all[end] + sizeof frame;
            if (frame.size > all.size() - end - sizeof frame || frame.sum != Frame::sumOf(last, frame.size, data)) {
                break;
            }
            content.append(data, frame.size);
            last = frame.sum;
            end += sizeof frame + frame.size;
        }
        if (end < acknowledged) {
            throw DamagedException("its data from byte " + std::to_string(end) + " on does not match the checksum");
        }
        if (end < all.size() && ftruncate(fd, static_cast<off_t>(end)) != 0) {
            fail("cut");
        }
        size = content.size();
    }

    bool canHandleFile(const std::string_view other) const override { return other == path; }

    std::unique_ptr<FileInfo> openFile(const std::string&, kuzu::common::FileOpenFlags, Context*) override {
        recovered.swap(content);
        if (end == 0) {
            return create();
        }
        auto fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
        if (fd < 0) {
            fail("open");
        }
        return std::make_unique<File>(this, fd);
    }

    void removeFileIfExists(const std::string&, const Context*) override {
        if (!discarded) {
            remove();
        }
    }

    bool fileOrPathExists(const std::string&, Context*) override { return end > 0; }
    std::string expandPath(Context*, const std::string& name) const override { return name; }

    // syncFile writes what was written since the last call as one frame.
    void syncFile(const FileInfo& file) const override {
        check();
        if (discarded) {
            return;
        }
        auto bytes = frame.size() - sizeof(Frame);
        if (bytes == 0) {
            return sync(fd(file));
        }
        if (bytes > UINT32_MAX) {
            errno = EFBIG;
            fail("write");
        }
        Frame head{static_cast<uint32_t>(bytes), 0};
        head.sum = Frame::sumOf(last, head.size, &frame[sizeof head]);
        memcpy(frame.data(), &head, sizeof head);
        write(fd(file), frame.data(), frame.size(), end);
        sync(fd(file));
        last = head.sum;
        end += frame.size();
        size += bytes;
        frame = std::string(sizeof head, '\0');
        Mark mark(end);
        turn = !turn;
        // What is acknowledged is durable, also if this fails.
        if (pwrite(fd(file), &mark, sizeof mark, offsetof(Header, marks) + turn * sizeof mark) < 0) {
            return;
        }
    }

protected:
    void writeFile(FileInfo&, const uint8_t* data, uint64_t bytes, uint64_t offset) const override {
        check();
        if (discarded) {
            return;
        }
        if (offset != size + frame.size() - sizeof(Frame)) {
            errno = EINVAL;
            fail("append to");
        }
        frame.append(reinterpret_cast<const char*>(data), bytes);
    }

    // truncate removes the file: a log is emptied after its checkpoint, and
    // removed then. No part of one is cut off that recover has accepted.
    void truncate(FileInfo&, uint64_t bytes) const override {
        check();
        if (discarded) {
            return;
        }
        if (bytes > 0) {
            throw DamagedException("its commits end at byte " + std::to_string(bytes) + " of " + std::to_string(size));
        }
        remove();
    }

    void readFromFile(FileInfo&, void* data, uint64_t bytes, uint64_t offset) const override {
        if (offset > recovered.size() || bytes > recovered.size() - offset) {
            errno = EINVAL;
            fail("read");
        }
        memcpy(data, &recovered[offset], bytes);
    }

    int64_t readFile(FileInfo&, void*, size_t) const override { unused(); }
    int64_t seek(FileInfo&, uint64_t, int) const override { unused(); }
    uint64_t getFileSize(const FileInfo&) const override { return size + frame.size() - sizeof(Frame); }

private:
    static int fd(const FileInfo& file) { return static_cast<const File&>(file).fd; }

    // readHeader returns the end of the acknowledged frames.
    uint64_t readHeader(const std::string& all) {
        Header header;
        if (all.size() < sizeof header || memcmp(all.data(), header.magic, sizeof header.magic) != 0) {
            throw DamagedException("its beginning is not that of a log");
        }
        memcpy(&header, all.data(), sizeof header);
        uint64_t acknowledged = 0;
        for (auto& mark : header.marks) {
            acknowledged = std::max(acknowledged, mark.valid() ? mark.end : 0);
        }
        if (acknowledged == 0) {
            throw DamagedException("its beginning does not match the checksum");
        }
        end = sizeof header;
        turn = header.marks[1].valid() && header.marks[1].end == acknowledged;
        return acknowledged;
    }

    // create creates the file with its header at once, so that no log is empty.
    std::unique_ptr<FileInfo> create() {
        auto name = path + ".new";
        auto made = open(name.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (made < 0) {
            fail("open");
        }
        auto file = std::make_unique<File>(this, made);
        Header header;
        write(made, reinterpret_cast<const char*>(&header), sizeof header, 0);
        sync(made);
        if (rename(name.c_str(), path.c_str()) != 0) {
            fail("rename");
        }
        syncFolder();
        end = sizeof header;
        return file;
    }

    void remove() const {
        if (unlink(path.c_str()) == 0) {
            syncFolder();
        } else if (errno != ENOENT) {
            fail("remove");
        }
        end = size = 0;
        last = 0;
        turn = false;
        frame = std::string(sizeof(Frame), '\0');
    }

    // syncFolder makes the entry in the folder durable.
    void syncFolder() const {
        auto folder = open(std::filesystem::path(path).parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        auto failure = folder < 0 || fsync(folder) != 0 ? errno : 0;
        close(folder);
        if (failure != 0) {
            errno = failure;
            fail("sync the folder of");
        }
    }

    void sync(int fd) const {
        if (fsync(fd) != 0) {
            fail("sync");
        }
    }

    void write(int fd, const char* data, size_t bytes, uint64_t offset) const {
        while (bytes > 0) {
            auto n = pwrite(fd, data, bytes, static_cast<off_t>(offset));
            if (n < 0 && errno == EINTR) {
                continue;
            }
            if (n <= 0) {
                fail("write");
            }
            data += n;
            bytes -= n;
            offset += n;
        }
    }

    void read(int fd, char* data, size_t bytes, uint64_t offset) const {
        while (bytes > 0) {
            auto n = pread(fd, data, bytes, static_cast<off_t>(offset));
            if (n < 0 && errno == EINTR) {
                continue;
            }
            if (n <= 0) {
                fail("read");
            }
            data += n;
            bytes -= n;
            offset += n;
        }
    }

    void check() const {
        if (failed && !discarded) {
            throw kuzu::common::IOException("the log of the database could not be written before");
        }
    }

    [[noreturn]] void fail(const char* what) const {
        failed = true;
        throw kuzu::common::IOException(std::string("cannot ") + what + " " + path + ": " + strerror(errno));
    }

    [[noreturn]] static void unused() { throw kuzu::common::IOException("this access to the log is not supported"); }

    const std::string path;
    // The engine calls all of these while it holds the lock of its log.
    mutable bool failed = false;
    bool discarded = false;
    mutable uint64_t end = 0;   // of the file, 0 = it does not exist
    mutable uint64_t size = 0;  // of the data of all frames
    mutable uint32_t last = 0;  // checksum of the last frame
    mutable bool turn = false;  // index of the newer mark
    mutable std::string frame = std::string(sizeof(Frame), '\0'); // the next one
    std::string content;   // of all frames, until the engine has opened the log
    std::string recovered; // the same, while the engine reads it
};

// opening is the log of the database that this thread opens: the engine reads it
// before a file system can be registered.
inline thread_local Log* opening = nullptr;

// Opening sets opening for a scope.
class Opening {
public:
    explicit Opening(Log& log) { opening = &log; }
    ~Opening() { opening = nullptr; }
    Opening(const Opening&) = delete;
};

} // namespace tea

// The engine's calls are resolved to this function instead of its own one.
kuzu::common::FileSystem* kuzu::common::VirtualFileSystem::findFileSystem(const std::string& path) const {
    if (tea::opening != nullptr && tea::opening->canHandleFile(path)) {
        return tea::opening;
    }
    for (auto& each : subSystems) {
        if (each->canHandleFile(path)) {
            return each.get();
        }
    }
    return defaultFS.get();
}
