package teacmd

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
)

// runExternal replaces the process by the program of a command. args are the
// arguments of tea. Only the directories that belong to tea are searched, not
// PATH.
func runExternal(args []string) error {
	dirs := []string{"/usr/lib/tea"}
	if self, err := os.Executable(); err == nil { // else there is no /proc
		here := filepath.Dir(resolved(self))
		dirs = []string{here, filepath.Join(filepath.Dir(here), "lib", "tea"), "/usr/lib/tea"}
	}
	name := "tea-" + args[0]
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	for _, dir := range dirs {
		if path := filepath.Join(dir, name); isFile(path) {
			return replaceBy(path, append([]string{os.Args[0]}, args...))
		}
	}
	return pluginError(fmt.Errorf("`tea %s` needs the program %s, which is not in %s\n  hint: the packages and archives of tea contain it; copy it next to tea", args[0], name, strings.Join(dirs, " or ")))
}

// replaceBy runs a program in this process. It returns only if that fails, and
// on Windows, which has no such call.
func replaceBy(path string, args []string) error {
	if runtime.GOOS != "windows" {
		return &os.PathError{Op: "start", Path: path, Err: syscall.Exec(path, args, os.Environ())}
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
