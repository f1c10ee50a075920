// Package atomicfile replaces files atomically and durably. Host, command line,
// SDK and plugins use it; start with [Write].
package atomicfile

import (
	"crypto/rand"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// Write replaces the file at a path with the output of write. A reader, also after a
// crash, finds the complete old or the complete new content. When Write returns without
// an error, the new content is on disk. An existing regular file keeps its permissions, a
// new one gets perm less the umask, a symbolic link is replaced by the file. Of two
// concurrent writers, the last one wins.
//
// A process that is killed can leave a temporary file next to the path. A later
// write of the same file removes it.
//
// After an error the old content is unchanged. The error is write's, or an
// [*fs.PathError], which can name the temporary file next to the path.
func Write(name string, perm fs.FileMode, write func(io.Writer) error) error {
	root, err := os.OpenRoot(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }() // its content is complete
	return WriteIn(root, filepath.Base(name), perm, write)
}

// WriteIn is [Write] for a name below a root. The name cannot lead out of the
// root.
func WriteIn(root *os.Root, name string, perm fs.FileMode, write func(io.Writer) error) error {
	keep := false
	if info, err := root.Lstat(name); err == nil && info.Mode().IsRegular() {
		perm, keep = info.Mode().Perm(), true
	}
	dir := path.Dir(filepath.ToSlash(name))
	f, temporary, err := create(root, dir, path.Base(filepath.ToSlash(name)), perm)
	if err != nil {
		return err
	}
	if keep { // the old permissions can differ from what the umask allows
		err = f.Chmod(perm)
	}
	if err == nil {
		err = write(f)
	}
	if err == nil {
		err = f.Sync()
	}
	err = errors.Join(err, f.Close())
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temporary))
	}
	return syncDir(root, dir)
}

// abandoned is the time without a change after which a temporary file is considered to
// belong to a process that was killed.
const abandoned = 10 * time.Minute

// create opens a new temporary file for the file with the base name in a directory. Its
// name is the first one that no concurrent writer uses, so that the files of killed
// writers are found again, or random if the name would be too long.
func create(root *os.Root, dir, base string, perm fs.FileMode) (f *os.File, name string, err error) {
	const flags = os.O_WRONLY | os.O_CREATE | os.O_EXCL
	for n := range writers {
		name = path.Join(dir, temporaryName(base, n))
		removeAbandoned(root, name)
		if f, err = root.OpenFile(name, flags, perm); err == nil {
			for n++; removeAbandoned(root, path.Join(dir, temporaryName(base, n))); n++ {
			}
			return f, name, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			break
		}
	}
	name = path.Join(dir, "."+rand.Text()+temporarySuffix)
	f, err = root.OpenFile(name, flags, perm)
	return f, name, err
}

// writers bounds the numbered names of temporary files: further concurrent writers
// get random names, which later writers cannot find and remove.
const writers = 100

func temporaryName(base string, n int) string {
	if n > 0 {
		base += "." + strconv.Itoa(n)
	}
	return "." + base + temporarySuffix
}

// removeAbandoned removes the file of a killed writer, and reports whether it did.
func removeAbandoned(root *os.Root, name string) bool {
	info, err := root.Lstat(name)
	return err == nil && info.Mode().IsRegular() && time.Since(info.ModTime()) > abandoned && root.Remove(name) == nil
}

// temporarySuffix is the suffix of a file's name until it is complete. A crash can leave
// such a file.
const temporarySuffix = ".tea-tmp"

// IsTemporary reports whether a name is the name of an incomplete file.
func IsTemporary(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, temporarySuffix)
}

// syncDir makes the names in a directory durable.
func syncDir(root *os.Root, name string) error {
	dir, err := root.Open(name)
	if err != nil {
		return err
	}
	return flush(dir)
}

// SyncDir makes the names in a directory durable.
func SyncDir(name string) error {
	dir, err := os.Open(name)
	if err != nil {
		return err
	}
	return flush(dir)
}

// flush flushes and closes a directory. Windows cannot flush one and relies on the file
// system's journal.
func flush(dir *os.File) error {
	if runtime.GOOS == "windows" {
		return dir.Close()
	}
	return errors.Join(dir.Sync(), dir.Close())
}
