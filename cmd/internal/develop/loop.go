package develop

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Loop builds a project after each change and puts a program that works into a
// directory, where running hosts notice it. A program that does not work never
// replaces one that does.
type Loop struct {
	Project *Project
	// Into is the absolute path of the directory. It is created if needed.
	Into string
	// Check starts a program as a host does, and returns its manifest.
	Check func(ctx context.Context, program string) (tea.Manifest, error)
	// Report receives each outcome.
	Report func(Outcome)
	// Every is the time between two looks at the project's files. A change is
	// built when nothing has changed between two looks.
	Every time.Duration
}

// Outcome is the result of one build.
type Outcome struct {
	// Manifest is that of the program in place, if there is no error.
	Manifest tea.Manifest
	// Program is its path.
	Program string
	Took    time.Duration
	// Err is why the program was not replaced.
	Err error
}

// Run builds the project, and again after each change, until ctx is done. The
// error is that of the directories; those of builds are reported.
func (l *Loop) Run(ctx context.Context) error {
	if err := os.MkdirAll(l.Into, 0o755); err != nil {
		return err
	}
	built, last := "", ""
	for tick := time.NewTicker(l.Every); ; {
		now, err := l.Project.fingerprint(l.Into)
		if err != nil {
			return err
		}
		if now != built && (now == last || built == "") {
			built = now
			l.build(ctx)
		}
		last = now
		select {
		case <-tick.C:
		case <-ctx.Done():
			tick.Stop()
			return nil
		}
	}
}

func (l *Loop) build(ctx context.Context) {
	begun := time.Now()
	o := Outcome{Program: filepath.Join(l.Into, prefix+l.Project.Name)}
	o.Manifest, o.Err = l.replace(ctx, o.Program)
	o.Took = time.Since(begun)
	if ctx.Err() == nil {
		l.Report(o)
	}
}

// replace puts a new program in place if it works.
func (l *Loop) replace(ctx context.Context, program string) (tea.Manifest, error) {
	p := l.Project
	next := p.program()
	if p.compile != nil {
		// Not a name that hosts look for.
		next = filepath.Join(l.Into, ".new-"+filepath.Base(program))
		defer os.Remove(next)
		if err := p.compile(ctx, next); err != nil {
			return tea.Manifest{}, err
		}
	}
	m, err := l.Check(ctx, next)
	if err != nil {
		return m, err
	}
	if m.Name != p.Name {
		return m, fmt.Errorf("the bundle is called %q, but the program %s%s", m.Name, prefix, p.Name)
	}
	if p.compile != nil {
		return m, os.Rename(next, program)
	}
	return m, link(next, program)
}

// link makes program a symbolic link to the one in the project. Hosts notice
// changes of the files that the manifest names.
func link(target, program string) error {
	if filepath.Dir(program) == filepath.Dir(target) {
		return nil
	}
	relative, err := filepath.Rel(filepath.Dir(program), target)
	if err != nil {
		return err
	}
	if there, err := os.Readlink(program); err == nil && there == relative {
		return nil
	}
	next := filepath.Join(filepath.Dir(program), ".new-"+filepath.Base(program))
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Symlink(relative, next); err != nil {
		return err
	}
	return os.Rename(next, program)
}
