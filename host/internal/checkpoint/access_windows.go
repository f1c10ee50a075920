package checkpoint

import (
	"os"
	"path/filepath"
)

// nonBlock is empty: a pipe is not a file here.
const nonBlock = 0

// checkWritable does nothing: this system has no such call. The first write
// fails instead.
func checkWritable(string) error { return nil }

// openFile opens a file that can be renamed and removed while it is open, which
// a root allows here, unlike os.OpenFile.
func openFile(path string, flag int, perm os.FileMode) (*os.File, error) {
	root, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.OpenFile(filepath.Base(path), flag, perm)
}
