package engine

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/atomicfile"
)

// closedSuffix is the suffix of a file that describes a database as it was closed: the
// checksum of its header and closedFormat. It is removed before the first write of a
// process, so it does not exist next to a log.
const closedSuffix = ".closed"

// closedFormat distinguishes the file from files of versions that did not remove it.
const closedFormat = 2

// headerSize is the size of the part of a database that the checksum covers. Each
// checkpoint of DuckDB changes it.
const headerSize = 3 * 4096

// NoteClosed describes a database that was closed, unless there are changes in a log.
func NoteClosed(path string, logs ...string) error {
	if log, err := lastLog(logs); log != "" || err != nil {
		return err
	}
	sum, err := headerSum(path)
	if err != nil {
		return err
	}
	unfinished := path + closedSuffix + ".new"
	if err := os.WriteFile(unfinished, []byte(fmt.Sprint(sum, " ", closedFormat)), 0o600); err != nil {
		return err
	}
	return os.Rename(unfinished, path+closedSuffix)
}

// ForgetClosed is called before the first write. The folder is synced, so that no log can
// be on disk together with the description.
func ForgetClosed(path string) {
	if os.Remove(path+closedSuffix) == nil {
		_ = atomicfile.SyncDir(filepath.Dir(path))
	}
}

// lastLog returns the name of a log that is not empty; "" if there is none.
func lastLog(logs []string) (found string, err error) {
	for _, name := range logs {
		info, err := os.Stat(name)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
		if err == nil && info.Size() > 0 {
			found = name
		}
	}
	return found, nil
}

// IsClosed reports whether a database was closed with all changes in its file and nothing
// wrote to it since. It returns an error if there is a log that does not belong to the
// database. If the description is missing or torn, it reports false.
func IsClosed(path string, logs ...string) (bool, error) {
	log, err := lastLog(logs)
	if err != nil {
		return false, err
	}
	content, err := os.ReadFile(path + closedSuffix)
	if err != nil {
		return false, nil //nolint:nilerr // as if it were torn
	}
	sum, format, _ := strings.Cut(strings.TrimSpace(string(content)), " ")
	actual, err := headerSum(path)
	if err != nil || actual != sum {
		return false, nil //nolint:nilerr // opening the database reports it
	}
	if log != "" && format == strconv.Itoa(closedFormat) {
		return false, tea.Errorf(tea.InternalError, "the log %s does not belong to the database %s; a copy of a memory was probably put over another one that had not been closed; to use the copy without the changes in this log, move the log away; if nothing was copied, delete %s",
			log, path, path+closedSuffix)
	}
	return log == "", nil
}

func headerSum(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	hash := sha256.New()
	if _, err := io.CopyN(hash, file, headerSize); err != nil {
		return "", err
	}
	return hex.EncodeToString(hash.Sum(nil)), nil
}
