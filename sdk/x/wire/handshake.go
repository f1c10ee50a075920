package wire

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	plugin "github.com/hashicorp/go-plugin"

	tea "github.com/the-edge-agent/tea/sdk"
)

// MaxHandshake is the maximum length of a handshake line.
const MaxHandshake = 4096

// StartError is the reason why a plugin did not start, worded as the end of a sentence.
type StartError struct {
	Type tea.ErrorType
	err  error
}

// Error returns the reason.
func (e *StartError) Error() string { return e.err.Error() }

// Unwrap returns the system's error, if any.
func (e *StartError) Unwrap() error { return errors.Unwrap(e.err) }

func startErrorf(t tea.ErrorType, format string, args ...any) *StartError {
	return &StartError{t, fmt.Errorf(format, args...)}
}

// CheckHandshake checks the first line of a plugin on stdout,
// CORE|VERSION|NETWORK|ADDRESS|PROTOCOL|..., and returns nil if it is valid.
func CheckHandshake(line string) *StartError {
	parts := strings.Split(strings.TrimSpace(line), "|")
	if len(parts) < 5 {
		return notAPlugin(line)
	}
	core, err := strconv.Atoi(parts[0])
	if err != nil {
		return notAPlugin(line)
	}
	version, err := strconv.Atoi(parts[1])
	if err != nil {
		return notAPlugin(line)
	}
	switch {
	case core != plugin.CoreProtocolVersion:
		return startErrorf(tea.DependencyMissing, "it speaks go-plugin's core protocol %d, this host speaks %d: rebuild it", core, plugin.CoreProtocolVersion)
	case version != tea.ProtocolVersion:
		return startErrorf(tea.DependencyMissing, "it speaks version %d of the plugin protocol, this host speaks %d: install a matching version", version, tea.ProtocolVersion)
	case parts[4] != string(plugin.ProtocolGRPC):
		return startErrorf(tea.DependencyMissing, "it speaks %q instead of gRPC", parts[4])
	case parts[2] != "unix" && parts[2] != "tcp":
		return notAPlugin(line)
	}
	return nil
}

func notAPlugin(line string) *StartError {
	return startErrorf(tea.InternalError, "it is not a tea plugin: the first line on its stdout is %.120q instead of a handshake", line)
}

// CannotExecute returns the reason why the system refuses to execute a plugin.
func CannotExecute(err error) *StartError {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return startErrorf(tea.DependencyMissing, "it is not a program for this machine (%s/%s): it was built for a different one, is damaged, or is a script without #! (%w)",
			runtime.GOOS, runtime.GOARCH, err)
	case errors.Is(err, fs.ErrPermission):
		return startErrorf(tea.DependencyMissing, "it is not executable (chmod +x), or is on a file system that allows no programs (%w)", err)
	case errors.Is(err, fs.ErrNotExist):
		return startErrorf(tea.DependencyMissing, "%s (%w)", explainMissingFile(err), err)
	}
	return startErrorf(tea.DependencyMissing, "%w", err)
}

// explainMissingFile explains a system error that does not name the missing file, which can also be
// the interpreter or the loader of the binary.
func explainMissingFile(err error) string {
	var e *fs.PathError
	if !errors.As(err, &e) {
		return "a file is missing"
	}
	f, err := os.Open(e.Path)
	if err != nil {
		return "the file does not exist"
	}
	defer f.Close()
	begin := make([]byte, 256)
	n, _ := f.Read(begin) // an empty file is not a script
	if line, ok := strings.CutPrefix(string(begin[:n]), "#!"); ok {
		interpreter, _, _ := strings.Cut(strings.TrimSpace(line), "\n")
		return fmt.Sprintf("its interpreter %q is not installed", interpreter)
	}
	return "its loader, the one of another C library, is not installed: use a static build, or one for this system"
}
