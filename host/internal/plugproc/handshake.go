package plugproc

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

// maxHandshake is the longest first line that can be a handshake.
const maxHandshake = 4096

// checkHandshake checks the first line of a plugin on stdout,
// CORE|VERSION|NETWORK|ADDRESS|PROTOCOL|...
func checkHandshake(name, line string) *tea.Error {
	parts := strings.Split(strings.TrimSpace(line), "|")
	if len(parts) < 5 {
		return notAPlugin(name, line)
	}
	core, err := strconv.Atoi(parts[0])
	if err != nil {
		return notAPlugin(name, line)
	}
	version, err := strconv.Atoi(parts[1])
	if err != nil {
		return notAPlugin(name, line)
	}
	switch {
	case core != plugin.CoreProtocolVersion:
		return startError(name, tea.DependencyMissing, "it speaks go-plugin's core protocol %d, this host speaks %d: rebuild it", core, plugin.CoreProtocolVersion)
	case version != tea.ProtocolVersion:
		return startError(name, tea.DependencyMissing, "it speaks version %d of the plugin protocol, this host speaks %d: install a matching version", version, tea.ProtocolVersion)
	case parts[4] != string(plugin.ProtocolGRPC):
		return startError(name, tea.DependencyMissing, "it speaks %q instead of gRPC", parts[4])
	case parts[2] != "unix" && parts[2] != "tcp":
		return notAPlugin(name, line)
	}
	return nil
}

func notAPlugin(name, line string) *tea.Error {
	return startError(name, tea.InternalError, "it is not a tea plugin: the first line on its stdout is %.120q instead of a handshake", line)
}

// cannotExecute explains why the system refuses to execute a file.
func cannotExecute(name string, err error) *tea.Error {
	switch {
	case errors.Is(err, syscall.ENOEXEC):
		return startError(name, tea.DependencyMissing, "it is not a program for this machine (%s/%s): it was built for another one, is damaged, or is a script without #! (%w)",
			runtime.GOOS, runtime.GOARCH, err)
	case errors.Is(err, fs.ErrNotExist):
		return startError(name, tea.DependencyMissing, "%s (%w)", whatIsMissing(err), err)
	}
	return startError(name, tea.DependencyMissing, "%w", err)
}

// whatIsMissing explains an error of the system that does not name the missing
// file: it can also be the interpreter or the loader that the binary names.
func whatIsMissing(err error) string {
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

// startError returns the error of a plugin that did not start.
func startError(name string, t tea.ErrorType, format string, args ...any) *tea.Error {
	format, args = "plugin %s did not start: "+format, append([]any{name}, args...)
	if t != tea.Canceled {
		return faultError(name, t, format, args...)
	}
	e := tea.Errorf(t, format, args...)
	e.Source = name
	return e
}
