package plugproc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/diag"
)

// prefix begins the name of every plugin's binary.
const prefix = "tea-plugin-"

// maxDescribing is how many plugins without a cached manifest are asked at
// the same time.
const maxDescribing = 4

// Problem is something in a plugin directory that is not as its owner may
// think. An error means that the plugin is not there for workflows.
type Problem struct {
	Severity diag.Severity
	Path     string
	Message  string
}

// String is the problem on one line.
func (p Problem) String() string {
	return fmt.Sprintf("%s: %s: %s", p.Path, p.Severity, p.Message)
}

// binary is a file that may be a plugin.
type binary struct {
	name string
	path string // absolute
	info fs.FileInfo
}

// Discover looks for plugins in o.Dirs and reads their manifests. A plugin is
// started only where no manifest is cached for this very file; it is asked
// once and ended again. One that used up its time to start without an answer
// is not asked again for a while, unless o.AskAgain says so. What is wrong with single files is in the problems,
// sorted by the order of search. The error is that of ctx.
//
// The caller closes the set.
func Discover(ctx context.Context, o Options) (*Set, []Problem, error) {
	o = o.withDefaults()
	binaries, problems := scan(o)
	set := &Set{launcher: &launcher{options: o}, plugins: map[string]*loaded{}}
	cache := manifestCache{dir: o.CacheDir, logger: o.Logger}
	manifests := make([]tea.Manifest, len(binaries))
	errs := make([]error, len(binaries))
	slots := make(chan struct{}, maxDescribing)
	var asking sync.WaitGroup
	for i, b := range binaries {
		m, found, err := cache.read(b)
		if err != nil {
			problems = append(problems, Problem{Severity: diag.Warning, Path: besidePath(b), Message: err.Error()})
		}
		if found {
			manifests[i] = m
			continue
		}
		if errs[i] = cache.readSilence(b); errs[i] != nil && !o.AskAgain {
			continue
		}
		asking.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			begin := time.Now()
			manifests[i], errs[i] = set.describe(ctx, b)
			switch {
			case errs[i] == nil:
				cache.write(b, manifests[i])
			case time.Since(begin) >= o.StartTimeout && ctx.Err() == nil:
				cache.writeSilence(b, reason(errs[i]))
			}
		})
	}
	asking.Wait()
	if err := ctx.Err(); err != nil {
		return nil, nil, errors.Join(fmt.Errorf("look for plugins: %w", err), set.Close(context.WithoutCancel(ctx)))
	}
	for i, b := range binaries {
		if errs[i] == nil && manifests[i].Name != b.name {
			errs[i] = fmt.Errorf("it says that its name is %q, which needs a file called %s%s", manifests[i].Name, prefix, manifests[i].Name)
		}
		if errs[i] != nil {
			problems = append(problems, Problem{Severity: diag.Error, Path: b.path, Message: reason(errs[i])})
			continue
		}
		if err := set.refuse(manifests[i]); err != nil {
			problems = append(problems, Problem{Severity: diag.Error, Path: b.path, Message: err.Error()})
			continue
		}
		set.add(b, manifests[i])
	}
	return set, problems, nil
}

// refuse says why a plugin cannot stand beside those that are found before it.
func (s *Set) refuse(m tea.Manifest) error {
	for _, action := range m.Actions {
		for _, name := range s.order {
			if earlier := s.plugins[name]; earlier.Manifest.Find(action.Name) != nil {
				return fmt.Errorf("not used, since %s, which is found first, has the action %s too: remove one of the two", earlier.Path, action.Name)
			}
		}
	}
	return nil
}

// reason words an error beside the path of a plugin: without the plugin's name.
func reason(err error) string {
	var e *tea.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// describe starts a plugin to ask for its manifest.
func (s *Set) describe(ctx context.Context, b binary) (tea.Manifest, error) {
	p, err := s.launcher.launch(ctx, b.name, b.path)
	if err != nil {
		return tea.Manifest{}, err
	}
	defer p.stop(context.WithoutCancel(ctx))
	ctx, cancel := context.WithTimeout(ctx, s.launcher.options.StartTimeout)
	defer cancel()
	return p.wire.Describe(ctx)
}

// scan lists the plugins in the directories, the first of each name.
func scan(o Options) ([]binary, []Problem) {
	var binaries []binary
	var problems []Problem
	first := map[string]string{}
	for i, dir := range o.Dirs {
		entries, err := os.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			problems = append(problems, Problem{Severity: diag.Warning, Path: dir, Message: err.Error()})
			continue
		}
		entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !isCandidate(e) })
		if len(entries) > 0 && isOpen(dir) {
			if i >= o.Named {
				problems = append(problems, Problem{
					Severity: diag.Warning, Path: dir, Message: "its plugins are not used, since everybody may write to it (chmod o-w, or name it with --plugins)",
				})
				continue
			}
			o.Logger.Warn("everybody may put a plugin into this directory (chmod o-w)", "dir", dir)
		}
		for _, entry := range entries {
			b, err := inspect(dir, entry.Name())
			winner, shadowed := first[b.name]
			switch {
			case err != nil:
				problems = append(problems, Problem{Severity: diag.Warning, Path: b.path, Message: err.Error()})
			case shadowed && winner != b.path:
				problems = append(problems, Problem{Severity: diag.Warning, Path: b.path, Message: "not used, since " + winner + " is found first"})
			case !shadowed:
				first[b.name] = b.path
				binaries = append(binaries, b)
			}
		}
	}
	return binaries, problems
}

// isOpen tells whether everybody may put a plugin into a directory.
func isOpen(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.Mode().Perm()&0o002 != 0
}

// isCandidate tells by name and kind whether the entry means to be a plugin.
// A manifest lies beside its binary and ends in .json.
func isCandidate(entry fs.DirEntry) bool {
	name := entry.Name()
	return strings.HasPrefix(name, prefix) && !entry.IsDir() && filepath.Ext(name) != ".json"
}

// inspect refuses what must not be run. The target of a symbolic link counts.
func inspect(dir, file string) (binary, error) {
	b := binary{name: strings.TrimPrefix(file, prefix), path: filepath.Join(dir, file)}
	path, err := filepath.Abs(b.path)
	if err != nil {
		return b, err
	}
	b.path = path
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, errors.New("not run, since the link leads nowhere")
	}
	if err != nil {
		return b, err
	}
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return b, errors.New("not run, since it is no regular file")
	case mode.Perm()&0o111 == 0:
		return b, errors.New("not run, since it is not executable (chmod +x)")
	case mode.Perm()&0o002 != 0:
		return b, errors.New("not run, since everybody may write to it (chmod o-w)")
	}
	b.info = info
	return b, nil
}
