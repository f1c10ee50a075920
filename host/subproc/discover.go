package subproc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/the-edge-agent/tea/host/internal/digest"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// prefix is the prefix of the name of every plugin's binary.
const prefix = "tea-plugin-"

// Problem is a fault in a plugin directory. It is also an error. With severity error,
// workflows cannot use the plugin.
type Problem struct {
	Severity diag.Severity
	Path     string
	Message  string
	// Err is the error of [Options.Verify] if it refused the plugin.
	Err error
}

// Error returns the problem on one line.
func (p Problem) Error() string { return p.Path + ": " + p.Message }

// binary is a file that may be a plugin.
type binary struct {
	name  string
	path  string // absolute
	state string // see [digest.State]
}

// key identifies a binary in its current state.
func (b binary) key() string { return b.path + " " + b.state }

// find is [Discover] in only the directories of the options. The problems are in the
// order of the search.
func find(ctx context.Context, o Options) (*Plugins, []Problem, error) {
	o = o.withDefaults()
	found, problems, err := scan(o)
	if err != nil {
		return nil, nil, err
	}
	set := &Plugins{
		launcher: &launcher{options: o},
		store:    manifestStore{dir: o.CacheDir, logger: o.Logger},
		plugins:  map[string]*supervisor{},
		useless:  map[string]bool{},
		logged:   map[string]bool{},
	}
	set.launcher.status = set.Status
	set.life, set.end = context.WithCancel(context.Background())
	problems = append(problems, o.unattached(found)...)
	candidates, unused := choose(found, func(b binary) error { return o.verify(b.name, b.path) })
	problems = append(problems, unused...)
	for _, c := range candidates {
		if err := ctx.Err(); err != nil {
			return nil, nil, fmt.Errorf("look for plugins: %w", err)
		}
		b := c.binary
		if c.refused != nil {
			set.alreadyLogged(b, c.refused)
			problems = append(problems, c.problem(diag.Error))
			continue
		}
		m, err := set.store.read(b)
		if err != nil {
			set.unread = append(set.unread, Unread{Name: b.name, Path: b.path, Reason: err.Error(), binary: b})
			continue
		}
		if err := set.add(b, m); err != nil {
			set.alreadyLogged(b, err)
			problems = append(problems, Problem{Severity: diag.Error, Path: b.path, Message: err.Error()})
		}
	}
	_, set.refused = set.offered()
	return set, append(problems, set.refused...), nil
}

// reason returns the message of an error for use after the path of a plugin, without
// the plugin's name.
func reason(err error) string {
	var e *tea.Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// candidate is the file of a plugin, with the reason why it must not be used.
type candidate struct {
	binary
	refused error
}

func (c candidate) problem(severity diag.Severity) Problem {
	return Problem{Severity: severity, Path: c.path, Message: "not used: " + c.refused.Error(), Err: c.refused}
}

// choose returns one file for each name: the first one that verify allows, or the first
// one if it allows none. The problems are about the other files.
func choose(found []binary, verify func(binary) error) (chosen []candidate, problems []Problem) {
	index := map[string]int{}
	for _, b := range found {
		i, known := index[b.name]
		if known && chosen[i].refused == nil {
			problems = append(problems, Problem{Severity: diag.Warning, Path: b.path, Message: "not used: " + chosen[i].path + " is found first"})
			continue
		}
		next := candidate{b, verify(b)}
		switch {
		case !known:
			index[b.name] = len(chosen)
			chosen = append(chosen, next)
		case next.refused == nil:
			problems = append(problems, chosen[i].problem(diag.Warning))
			chosen[i] = next
		default:
			problems = append(problems, next.problem(diag.Warning))
		}
	}
	return chosen, problems
}

// scan lists the plugins in the directories in the order of the search.
func scan(o Options) ([]binary, []Problem, error) {
	s := scanner{seen: map[string]bool{}}
	for _, dir := range o.Dirs {
		path, err := filepath.Abs(dir)
		if err != nil {
			return nil, nil, err
		}
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, nil, err
		}
		if slices.Contains(o.Foreign, dir) {
			s.addTrusted(o.Trust, dir)
			continue
		}
		if s.add(path, entries); isOpen(path) {
			o.Logger.Warn(fmt.Sprintf("every user of this machine can put a plugin into %s; use chmod o-w", path))
		}
	}
	if o.Project != "" && !slices.ContainsFunc(o.Dirs, func(named string) bool { return sameDir(named, o.Project) }) {
		s.addTrusted(o.Trust, o.Project)
	}
	for _, dir := range o.Standard {
		entries, err := os.ReadDir(dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			s.warn(dir, err.Error())
		case isOpen(dir) && slices.ContainsFunc(entries, isCandidate):
			s.warn(dir, "its plugins are not used: every user can write to it (chmod o-w, or name it with --plugins)")
		default:
			s.add(dir, entries)
		}
	}
	return s.binaries, s.problems, nil
}

// scanner collects the contents of the directories.
type scanner struct {
	seen     map[string]bool // the paths of the binaries
	binaries []binary
	problems []Problem
}

func (s *scanner) warn(path, message string) {
	s.problems = append(s.problems, Problem{Severity: diag.Warning, Path: path, Message: message})
}

// addTrusted adds the plugins of a directory if the user trusts it.
func (s *scanner) addTrusted(trust Trust, given string) {
	dir, err := filepath.Abs(given)
	if err != nil {
		return
	}
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !slices.ContainsFunc(entries, isCandidate) {
		return
	}
	trusted := false
	if err == nil {
		trusted, err = trust.has(dir)
	}
	switch {
	case err != nil:
		s.warn(dir, "its plugins are not used: "+err.Error())
	case isOpen(dir):
		s.warn(dir, "its plugins are not used: every user can write to it (chmod o-w)")
	case !trusted:
		s.warn(dir, "its plugins are not used until you trust them: tea plugin trust "+given)
	default:
		if resolved, err := filepath.EvalSymlinks(dir); err == nil { // use what was trusted
			dir = resolved
		}
		s.add(dir, entries)
	}
}

func sameDir(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

// add adds the plugins among the entries of a directory.
func (s *scanner) add(dir string, entries []fs.DirEntry) {
	for _, entry := range entries {
		if !isCandidate(entry) {
			continue
		}
		b, err := inspect(dir, entry.Name())
		switch {
		case err != nil:
			s.warn(b.path, err.Error())
		case !s.seen[b.path]:
			s.seen[b.path] = true
			s.binaries = append(s.binaries, b)
		}
	}
}

// isOpen reports whether all users can write to a directory.
func isOpen(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && digest.OthersCanWrite(info, 0o002)
}

// isCandidate reports whether an entry has the name and kind of a plugin. Manifests next
// to binaries end in .json; the lists of sources that cargo writes end in .d.
func isCandidate(entry fs.DirEntry) bool {
	name := entry.Name()
	extension := filepath.Ext(name)
	return strings.HasPrefix(name, prefix) && !entry.IsDir() && extension != ".json" && extension != ".d"
}

// errNoTarget is the error for a dangling link.
var errNoTarget = errors.New("not run: the target of the link does not exist")

// inspect refuses files that must not be run. A symbolic link is treated as its target.
func inspect(dir, file string) (binary, error) {
	b := binary{name: strings.TrimSuffix(strings.TrimPrefix(file, prefix), programSuffix), path: filepath.Join(dir, file)}
	path, err := filepath.Abs(b.path)
	if err != nil {
		return b, err
	}
	b.path = path
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return b, errNoTarget
	}
	if err != nil {
		return b, err
	}
	switch mode := info.Mode(); {
	case !mode.IsRegular():
		return b, errors.New("not run: it is not a regular file")
	case !isExecutable(info):
		return b, errors.New("not run: it is not executable (chmod +x)")
	case digest.OthersCanWrite(info, 0o002):
		return b, errors.New("not run: every user can write to it (chmod o-w)")
	}
	b.state = digest.State(path)
	return b, nil
}
