package python

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/childproc"
	"github.com/the-edge-agent/tea/sdk/x/filelock"
)

// installTimeout bounds the installation of the requirements.
const installTimeout = 10 * time.Minute

// interpreter returns the path of the interpreter. The first call installs the
// requirements, if the settings ask for it.
func (c *Client) interpreter(ctx context.Context) (string, error) {
	c.installing.Lock()
	defer c.installing.Unlock()
	if c.found != "" {
		return c.found, nil
	}
	name := cmp.Or(c.settings.Interpreter, "python3")
	if c.settings.Venv != "" {
		name = inside(c.settings.Venv)
	}
	path, err := exec.LookPath(name)
	if err != nil && name == "python3" && runtime.GOOS == "windows" {
		path, err = exec.LookPath("python")
	}
	if err != nil {
		return "", tea.Errorf(tea.DependencyMissing, "no interpreter of Python: %w; install python3, or name one in settings.python.interpreter or settings.python.venv", err)
	}
	if c.settings.Install && len(c.settings.Requirements) > 0 {
		if c.packages, err = c.install(ctx, path); err != nil {
			return "", err
		}
	}
	c.found = path
	return path, nil
}

// inside returns the interpreter of a virtual environment.
func inside(venv string) string {
	if runtime.GOOS == "windows" {
		return filepath.Join(venv, "Scripts", "python.exe")
	}
	return filepath.Join(venv, "bin", "python")
}

// install returns the directory with the requirements, which it fills if no earlier call
// has done it. Processes that install the same wait for each other.
func (c *Client) install(ctx context.Context, interpreter string) (string, error) {
	for _, r := range c.settings.Requirements {
		if strings.HasPrefix(strings.TrimSpace(r), "-") {
			return "", tea.Errorf(tea.ValidationError, "settings.python.requirements: %q is an option of pip, not a package", r)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", tea.Errorf(tea.DependencyMissing, "no directory for the requirements: %w", err)
	}
	hash := sha256.Sum256([]byte(strings.Join(slices.Concat([]string{interpreter}, c.settings.Requirements), "\x00")))
	base := filepath.Join(cache, "tea", "python")
	dir := filepath.Join(base, hex.EncodeToString(hash[:8]))
	if err := os.MkdirAll(base, 0o700); err != nil {
		return "", err
	}
	lock, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	defer lock.Close()
	if err := filelock.Lock(lock); err != nil {
		return "", err
	}
	complete := filepath.Join(dir, "complete")
	if _, err := os.Stat(complete); err == nil {
		return dir, nil
	}
	if err := os.RemoveAll(dir); err != nil { // of an installation that was interrupted
		return "", err
	}
	ctx, cancel := context.WithTimeout(ctx, installTimeout)
	defer cancel()
	args := []string{"-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--quiet", "--target", dir, "--"}
	if err := c.command(ctx, interpreter, append(args, c.settings.Requirements...)...); err != nil {
		return "", err
	}
	return dir, os.WriteFile(complete, nil, 0o600)
}

// command runs pip.
func (c *Client) command(ctx context.Context, program string, args ...string) error {
	guard, err := c.watch()
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = c.environ(), c.dir(), waitDelay
	childproc.Group(cmd)
	cmd.Cancel = func() error { return childproc.KillGroup(cmd.Process) }
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err = cmd.Start(); err == nil {
		guard.Add(cmd.Process.Pid)
		err = cmd.Wait()
		guard.Forget(cmd.Process.Pid)
	}
	if err == nil {
		return nil
	}
	text := strings.TrimSpace(out.String())
	return tea.Errorf(tea.DependencyMissing, "install the requirements: `%s %s` failed: %w", filepath.Base(program), strings.Join(args[:2], " "), errors.Join(err, errors.New(text[max(0, len(text)-lastWords):])))
}
