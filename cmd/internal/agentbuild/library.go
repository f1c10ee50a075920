package agentbuild

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// libraries maps a bundle and a build tag to the script that builds the native
// library. With the arguments build and OS/ARCH the script builds it; with env
// and OS/ARCH it prints the variables that go build needs.
var libraries = map[string]map[string]string{
	own + "/plugins/graph": {"cozo": "cozo/library"},
}

// buildLibraries builds the native libraries of the bundles' tags, and sets the
// variables for the Go toolchain.
func (p *program) buildLibraries(ctx context.Context) error {
	for _, b := range p.Bundles {
		for _, tag := range b.Tags {
			script, ok := libraries[b.Module][tag]
			if !ok {
				continue
			}
			dir, err := p.command(ctx, "list", "-mod=mod", "-m", "-f", "{{.Dir}}", b.Module).Output()
			if err != nil {
				return &CompileError{err}
			}
			script = filepath.Join(strings.TrimSpace(string(dir)), filepath.FromSlash(script))
			var out []byte
			for _, command := range []string{"build", "env"} {
				if out, err = p.script(ctx, script, command); err != nil {
					return &CompileError{fmt.Errorf("%s[%s]: %w", strings.TrimPrefix(b.Package, own+"/plugins/"), tag, err)}
				}
			}
			p.env = append(p.env, strings.Split(strings.TrimSpace(string(out)), "\n")...)
		}
	}
	return nil
}

// script runs a script for the target. If it fails, its last message is the error.
func (p *program) script(ctx context.Context, file, command string) ([]byte, error) {
	arch, _, _ := strings.Cut(p.Arch, "/")
	cmd := exec.CommandContext(ctx, "bash", file, command, p.OS+"/"+arch)
	cmd.WaitDelay = time.Second // compilers can outlive the script
	var messages bytes.Buffer
	cmd.Stderr = io.MultiWriter(&messages, p.Log)
	out, err := cmd.Output()
	if lines := strings.Split(strings.TrimSpace(messages.String()), "\n"); err != nil && lines[0] != "" {
		err = fmt.Errorf("%s", lines[len(lines)-1])
	}
	return out, err
}
