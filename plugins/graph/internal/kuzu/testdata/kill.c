// Kills the process before one of the calls with which the engine changes the
// disk: the one whose number is in TEA_KUZU_KILL_AT. strace counts the calls of
// each thread on its own, and the engine runs each statement on another thread.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/types.h>
#include <unistd.h>

static atomic_long calls;

static void count(void) {
	const char *at = getenv("TEA_KUZU_KILL_AT");
	if (at && atomic_fetch_add(&calls, 1) + 1 == atol(at))
		kill(getpid(), SIGKILL);
}

#define COUNTED(type, name, parameters, arguments)             \
	type name parameters {                                     \
		type(*next) parameters = dlsym(RTLD_NEXT, #name);      \
		count();                                               \
		return next arguments;                                 \
	}

COUNTED(ssize_t, pwrite, (int file, const void *data, size_t size, off_t at), (file, data, size, at))
COUNTED(int, fsync, (int file), (file))
COUNTED(int, fdatasync, (int file), (file))
COUNTED(int, ftruncate, (int file, off_t size), (file, size))
COUNTED(int, truncate, (const char *path, off_t size), (path, size))
COUNTED(int, rename, (const char *from, const char *to), (from, to))
COUNTED(int, remove, (const char *path), (path))
COUNTED(int, unlink, (const char *path), (path))
COUNTED(int, unlinkat, (int dir, const char *path, int flags), (dir, path, flags))
