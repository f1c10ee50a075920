package teacmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// hostFlag names the server on which a command runs.
const hostFlag = "--host"

// remoteNames are the commands that can run on a server; localNames only work on
// runs of this machine.
var (
	remoteNames = []string{"run", "resume", "fork", "runs"}
	localNames  = []string{"call", "checkpoint", "memory"}
)

// onServer returns the arguments without --host. If --host or TEA_HOST names a
// server, it selects the commands for a server.
func (a *app) onServer(args []string) ([]string, error) {
	address, flag := a.getenv("TEA_HOST"), "TEA_HOST"
	rest := args
	if len(args) > 0 {
		if name, given, ok := strings.Cut(args[0], "="); name == hostFlag {
			if rest = args[1:]; !ok && len(rest) > 0 {
				given, rest = rest[0], rest[1:]
			}
			if given == "" {
				return nil, usageErrorf("%s: expected the address of a server: http://HOST:PORT, https://HOST:PORT or unix:PATH", hostFlag)
			}
			address, flag = given, hostFlag
		}
	}
	if address == "" || len(rest) == 0 && flag != hostFlag {
		return args, nil
	}
	if len(rest) == 0 {
		return nil, usageErrorf("%s: expected one of the commands %s", hostFlag, strings.Join(remoteNames, ", "))
	}
	if flag == hostFlag && strings.HasPrefix(rest[0], "-") && rest[0] != "--help" && rest[0] != "-h" {
		return nil, usageErrorf("%s: expected one of the commands %s before %s", hostFlag, strings.Join(remoteNames, ", "), rest[0])
	}
	if !slices.Contains(remoteNames, rest[0]) {
		if flag == hostFlag || slices.Contains(localNames, rest[0]) {
			return nil, usageErrorf("`tea %s` does not run on a server (%s %s); those that do are %s", rest[0], flag, withoutPassword(address), strings.Join(remoteNames, ", "))
		}
		return rest, nil
	}
	if a.remote == nil {
		return nil, runExternal("serve", args)
	}
	a.server, a.added = address, a.remote
	return rest, nil
}

// withoutPassword returns an address for messages, with its credentials masked.
func withoutPassword(address string) string {
	scheme, rest, ok := strings.Cut(address, "//")
	if at := strings.LastIndexByte(rest, '@'); ok && at >= 0 {
		return scheme + "//***" + rest[at:]
	}
	return address
}

// runExternal replaces the process with the program tea-PROGRAM. args are the
// arguments of tea. Only the directories of tea are searched, not PATH.
func runExternal(program string, args []string) error {
	var dirs []string
	if self, err := os.Executable(); err == nil {
		dirs = append(dirs, filepath.Dir(resolved(self)))
	}
	dirs = append(dirs, libraryDirs()...)
	name := "tea-" + program
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	for _, dir := range dirs {
		if path := filepath.Join(dir, name); isFile(path) {
			return replaceBy(path, append([]string{os.Args[0]}, args...))
		}
	}
	return pluginError(fmt.Errorf("`tea %s` needs the program %s, which is not in %s\n  hint: install the package tea or %s, or copy the program from an archive of tea next to tea", args[0], name, strings.Join(dirs, " or "), name))
}

// libraryDirs returns the directories with tea's further programs; plugins are below
// them. They are lib/tea next to the directory of this program, as in an unpacked
// archive, and /usr/lib/tea.
func libraryDirs() []string {
	const system = "/usr/lib/tea"
	self, err := os.Executable()
	if err != nil { // there is no /proc
		return []string{system}
	}
	prefix := filepath.Dir(filepath.Dir(resolved(self)))
	own := filepath.Join(prefix, "lib", "tea")
	if info, err := os.Stat(prefix); err != nil || info.Mode().Perm()&0o002 != 0 || own == system {
		return []string{system} // anyone could put programs into a prefix such as /tmp
	}
	return []string{own, system}
}

// replaceBy executes a program in place of this process. It returns if that fails, and
// on Windows, which has no such call.
func replaceBy(path string, args []string) error {
	if runtime.GOOS != "windows" {
		return &os.PathError{Op: "start", Path: path, Err: execProgram(path, args, os.Environ())}
	}
	_, stop := stoppable() // the program gets the same signals
	defer stop(nil)
	child := exec.CommandContext(context.Background(), path)
	child.Args, child.Stdin, child.Stdout, child.Stderr = args, os.Stdin, os.Stdout, os.Stderr
	err := child.Run()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return &exitError{code: exit.ExitCode()}
	}
	return err
}
