package subproc

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// attachScript is the process that represents a plugin under a debugger to the host:
// it prints the handshake of that plugin and ends with the host. The host treats it
// like the plugin's process.
const attachScript = `echo "1|1|unix|$0|grpc|"; read -r end <&3`

// attachment returns the path of the socket of a plugin under a debugger, or of its
// directory; "" if the host starts the plugin itself.
func (o Options) attachment(name string) string {
	for entry := range strings.SplitSeq(o.Reattach, ",") {
		plugin, address, _ := strings.Cut(strings.TrimSpace(entry), "=")
		if plugin != name {
			continue
		}
		if parts := strings.Split(address, "|"); len(parts) > 3 { // the line of the handshake
			return parts[3]
		}
		return address
	}
	return ""
}

// attach makes the process represent a plugin that listens on a socket.
func (p *process) attach(path string) error {
	if p.attached = socketAt(path); p.attached == "" {
		return startError(p.name, tea.DependencyMissing, "no plugin listens on %s (TEA_REATTACH); start it with TEA_PLUGIN_COOKIE=tea.plugin.v1 and name the socket that it prints", path)
	}
	p.runner.command, p.runner.args = "/bin/sh", []string{"-c", attachScript, p.attached}
	p.logger.Warn(fmt.Sprintf("calls go to the plugin at %s, which this host did not start (TEA_REATTACH)", p.attached))
	return nil
}

// socketAt returns the socket at a path, or the newest one in a directory; "" if
// there is none.
func socketAt(path string) string {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return ""
	case info.Mode()&os.ModeSocket != 0:
		return path
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return ""
	}
	newest, found := time.Time{}, ""
	for _, entry := range entries {
		info, err := entry.Info()
		if err == nil && info.Mode()&os.ModeSocket != 0 && info.ModTime().After(newest) {
			newest, found = info.ModTime(), filepath.Join(path, entry.Name())
		}
	}
	return found
}

// unattached returns a problem for each plugin in Options.Reattach that is not
// found.
func (o Options) unattached(found []binary) []Problem {
	var problems []Problem
	for entry := range strings.SplitSeq(o.Reattach, ",") {
		name, _, ok := strings.Cut(strings.TrimSpace(entry), "=")
		switch {
		case name == "" && !ok:
		case !ok:
			problems = append(problems, Problem{Severity: diag.Error, Path: "TEA_REATTACH", Message: fmt.Sprintf("expected NAME=SOCKET, got %q", entry)})
		case !slices.ContainsFunc(found, func(b binary) bool { return b.name == name }):
			problems = append(problems, Problem{Severity: diag.Error, Path: "TEA_REATTACH", Message: fmt.Sprintf("plugin %q not found; name the directory of its binary with --plugins", name)})
		}
	}
	return problems
}
