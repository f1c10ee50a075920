package subproc

import (
	"fmt"
	"maps"
	"os"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/host/internal/digest"
	tea "github.com/the-edge-agent/tea/sdk"
)

// executable is one version of a plugin: its binary and the manifest for which
// it was accepted. It is safe for concurrent use.
type executable struct {
	binary   binary
	target   binary // the binary with links resolved
	manifest tea.Manifest
	files    map[string]string // the states of the manifest's files

	mu sync.Mutex
	// held is the open binary, from its first start on, so that the version can
	// be started again after another file has replaced it.
	held     *os.File
	heldInfo os.FileInfo
}

func newExecutable(b binary, m tea.Manifest) *executable {
	target := b
	target.path = withoutLink(b.path)
	return &executable{binary: b, target: target, manifest: m, files: stateOf(target, m.Files)}
}

// isReplaced reports whether the file was replaced by another version or removed.
func (e *executable) isReplaced() bool { return e.hasChanged(e.binary) }

func (e *executable) hasChanged(b binary) bool {
	return digest.State(b.path) != b.state || !maps.Equal(e.files, stateOf(b, e.manifest.Files))
}

// hold keeps the binary open. It fails if the file is not the binary of this
// version.
func (e *executable) hold() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held != nil {
		return nil
	}
	f, err := os.Open(e.binary.path)
	if err != nil {
		return err
	}
	if state, err := digest.StateOf(f); err != nil || state != e.binary.state {
		f.Close()
		return errReplaced
	}
	if e.heldInfo, err = f.Stat(); err != nil {
		f.Close()
		return err
	}
	e.held = f
	return nil
}

// command returns the file to execute: the target of the binary's former link, which
// does not change with the link, or the binary, or the open file. It returns "" if none
// of them is available.
func (e *executable) command() string {
	switch {
	case !e.hasChanged(e.target):
		return e.target.path
	case !e.isReplaced():
		return e.binary.path
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.held == nil || !maps.Equal(e.files, stateOf(e.target, e.manifest.Files)) {
		return ""
	}
	open := fmt.Sprintf("%s%d/fd/%d", openFiles, os.Getpid(), e.held.Fd())
	info, err := os.Stat(open)
	if err != nil || info.Size() != e.heldInfo.Size() || !info.ModTime().Equal(e.heldInfo.ModTime()) {
		return ""
	}
	return open
}

// isStill reports whether a result of command is still this version.
func (e *executable) isStill(command string) bool {
	switch command {
	case e.target.path:
		return !e.hasChanged(e.target)
	case e.binary.path:
		return !e.isReplaced()
	}
	return true
}

// openFiles is the prefix of the path of an open file.
const openFiles = "/proc/"

// isOpenFile reports whether a command is an open file, which has no other name.
func isOpenFile(command string) bool { return strings.HasPrefix(command, openFiles) }

// close releases the binary. The version cannot be started again once it is replaced.
func (e *executable) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.held.Close() // the error for nil does not matter
	e.held = nil
}
