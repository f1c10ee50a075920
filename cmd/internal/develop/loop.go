package develop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
)

// Loop builds a project after each change and installs a working program in a
// directory that running hosts watch. A broken program never replaces a working
// one.
type Loop struct {
	Project *Project
	// Into is the absolute path of the directory. It is created if needed.
	Into string
	// Check starts a program as a host does, and returns its manifest.
	Check func(ctx context.Context, program string) (tea.Manifest, error)
	// Report receives each outcome.
	Report func(Outcome)
	// Every is the interval between two scans of the project's files. A change is
	// built once two scans find the same files.
	Every time.Duration
}

// Outcome is the result of one build.
type Outcome struct {
	// Manifest is the manifest of the installed program, if there is no error.
	Manifest tea.Manifest
	// Program is its path.
	Program string
	Took    time.Duration
	// Unchanged is set if the build produced the installed program again. The
	// file is not touched, so hosts do not swap.
	Unchanged bool
	// Err is the reason why the program was not replaced.
	Err error
}

// Run builds the project, and again after each change, until ctx is done. It
// returns errors of the directories; errors of builds go to Report.
func (l *Loop) Run(ctx context.Context) error {
	if err := os.MkdirAll(l.Into, 0o755); err != nil {
		return err
	}
	tick := time.NewTicker(l.Every)
	defer tick.Stop()
	return l.run(ctx, tick.C)
}

const (
	// mostLooks is the number of scans after which a project that keeps changing
	// is built.
	mostLooks = 10
	// echoes is the number of consecutive builds that were caused only by the
	// build before. The files that change during them are build output.
	echoes = 3
)

// run scans on each tick.
func (l *Loop) run(ctx context.Context, ticks <-chan time.Time) error {
	var last files
	c := changes{output: map[string]bool{}}
	if l.Project.compile != nil {
		c.output[filepath.Join(l.Into, prefix+l.Project.Name)] = true
	}
	for looks := 0; ; {
		now, err := l.Project.files(l.Into)
		if err != nil {
			return err
		}
		caused := c.since(now)
		if looks++; len(caused) == 0 {
			looks = 0
		}
		if c.before == nil || looks > 0 && (len(now.changed(last)) == 0 || looks >= mostLooks) {
			l.build(ctx)
			looks = 0
			after, err := l.Project.files(l.Into)
			if err != nil {
				return err
			}
			c.built(caused, now, after)
		}
		last = now
		select {
		case <-ticks:
		case <-ctx.Done():
			return nil
		}
	}
}

// changes separates edits of a project from files that its build writes.
type changes struct {
	// before and after are the files before and after the last build.
	before, after files
	echoes        int             // consecutive builds caused only by the build before
	output        map[string]bool // build output, which is not a change
}

// since returns the files that have changed since the last build began, without
// build output. A file that changes between builds is not output.
func (c *changes) since(now files) []string {
	for _, file := range now.changed(c.after) {
		if c.after != nil && c.before[file] != nil {
			delete(c.output, file)
		}
	}
	return slices.DeleteFunc(now.changed(c.before), func(file string) bool { return c.output[file] })
}

// built records a build and the files that caused it.
func (c *changes) built(caused []string, before, after files) {
	byLast := c.after.changed(c.before)
	echo := c.before != nil && !slices.ContainsFunc(caused, func(file string) bool { return !slices.Contains(byLast, file) })
	if c.echoes++; !echo {
		c.echoes = 0
	}
	c.before, c.after = before, after
	if c.echoes >= echoes {
		for _, file := range after.changed(before) {
			c.output[file] = true
		}
	}
}

func (l *Loop) build(ctx context.Context) {
	begun := time.Now()
	o := Outcome{Program: filepath.Join(l.Into, prefix+l.Project.Name)}
	o.Err = l.replace(ctx, &o)
	o.Took = time.Since(begun)
	if ctx.Err() == nil {
		l.Report(o)
	}
}

// replace installs a new program if it works.
func (l *Loop) replace(ctx context.Context, o *Outcome) (err error) {
	p := l.Project
	next := p.program()
	if p.compile != nil {
		// Hosts do not look for this name.
		next = filepath.Join(l.Into, ".new-"+filepath.Base(o.Program))
		defer os.Remove(next)
		if err := p.compile(ctx, next); err != nil {
			return err
		}
	}
	if o.Manifest, err = l.Check(ctx, next); err != nil {
		return err
	}
	if o.Manifest.Name != p.Name {
		return fmt.Errorf("the bundle is called %q, but the program %s%s", o.Manifest.Name, prefix, p.Name)
	}
	if p.compile == nil {
		return link(next, o.Program)
	}
	if o.Unchanged = sameContent(next, o.Program); o.Unchanged {
		return nil
	}
	return os.Rename(next, o.Program)
}

func sameContent(a, b string) bool {
	x, err := os.ReadFile(a)
	if err != nil {
		return false
	}
	y, err := os.ReadFile(b)
	return err == nil && bytes.Equal(x, y)
}

// link makes program a symbolic link to the program in the project. Hosts notice
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
