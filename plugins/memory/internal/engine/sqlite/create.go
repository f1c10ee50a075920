package sqlite

import (
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"strings"
)

// empty is a database with the empty tables of the schema, which opening migrates
// to newer versions. Its identity is anonymous. The package's tests write it,
// with -update.
//
//go:embed empty.sqlite
var empty string

// anonymous is the placeholder of the identity in the empty database.
const anonymous = "00000000000000000000000000000000"

// create creates the database atomically if it does not exist: it is written to a
// temporary file, synced and renamed. SQLite itself would wait for the disk eight
// times until its file, log and tables exist, instead of once.
//
// If there is a log or journal without a database, create leaves it to SQLite.
func create(path string) error {
	for _, part := range []string{"", "-wal", "-journal", "-shm"} {
		if _, err := os.Lstat(path + part); !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	identity := make([]byte, hex.DecodedLen(len(anonymous)))
	_, _ = rand.Read(identity) // it never fails
	return place([]byte(strings.Replace(empty, anonymous, hex.EncodeToString(identity), 1)), path)
}

// newSuffix is appended to the name of a temporary file. A file that a crash left
// is overwritten.
const newSuffix = "-new"

// place writes a file atomically. It does not sync the directory: SQLite does so
// when it creates its log there, before the first write is acknowledged.
func place(data []byte, path string) (err error) {
	temporary := path + newSuffix
	defer func() {
		if err != nil {
			os.Remove(temporary)
		}
	}()
	file, err := os.OpenFile(temporary, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return err
	}
	return os.Rename(temporary, path)
}
