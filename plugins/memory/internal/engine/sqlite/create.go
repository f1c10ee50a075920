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

// empty is a database that has the tables of the schema's versions up to one,
// and nothing in them; later ones are added when it is opened. Its identity is
// anonymous. The package's tests make it, with -update.
//
//go:embed empty.sqlite
var empty string

// anonymous stands in the empty database where each has its identity.
const anonymous = "00000000000000000000000000000000"

// create makes the database where there is none. It is written beside its
// place, brought to the disk and moved there, so that it exists whole or not
// at all. Were SQLite to make the file itself, and then the log and the tables
// in it, it would wait for the disk eight times before the first write, instead
// of once.
//
// A log or journal that stands there without its database is SQLite's to judge.
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

// unplaced is appended to the name of a database that is being made. One that
// a crash has left is overwritten by the next who makes it.
const unplaced = "-new"

// place gives a name to a file whose contents are on the disk. The name comes
// to the disk before the first write is acknowledged: SQLite makes a log for it
// in the same directory, and brings that directory to the disk.
func place(data []byte, path string) (err error) {
	temporary := path + unplaced
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
