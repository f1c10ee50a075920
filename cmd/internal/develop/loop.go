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
	// Unchanged is set if the build made the program that was in place already,
	// which was not touched: hosts do not swap.
	Unchanged bool
	// Err is why the program was not replaced.
	Err error
}

// Run builds the project, and again after each change, until ctx is done. The
// error is that of the directories; those of builds are reported.
func (l *Loop) Run(ctx context.Context) error {
	if err := os.MkdirAll(l.Into, 0o755); err != nil {
		return err
	}
	tick := time.NewTicker(l.Every)
	defer tick.Stop()
	return l.run(ctx, tick.C)
}

const (
	// mostLooks is the number of looks after which a project that does not come to
	// rest is built.
	mostLooks = 10
	// echoes is the number of builds in a row that only the build before them has
	// caused. What changes during them is their output.
	echoes = 3
)

// run is Run with a look for each tick.
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

// changes distinguishes the changes of a project from those that its build
// makes.
type changes struct {
	// before and after are the files around the last build.
	before, after files
	echoes        int             // builds so far that the one before has caused
	output        map[string]bool // does not count as a change
}

// since returns the files that have changed since the last build began, without
// its output. What changes between builds is not their output.
func (c *changes) since(now files) []string {
	for _, file := range now.changed(c.after) {
		if c.after != nil && c.before[file] != nil {
			delete(c.output, file)
		}
	}
	return slices.DeleteFunc(now.changed(c.before), func(file string) bool { return c.output[file] })
}

// built records a build that some files have caused.
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

// replace puts a new program in place if it works.
func (l *Loop) replace(ctx context.Context, o *Outcome) (err error) {
	p := l.Project
	next := p.program()
	if p.compile != nil {
		// Not a name that hosts look for.
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
