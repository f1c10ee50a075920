package assemble

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/confine"
	"github.com/the-edge-agent/tea/sdk/x/diag"

	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
)

// The scopes that a layer may have.
const (
	App       = "app"
	User      = "user"
	Matter    = "matter"
	Firm      = "firm"
	InSession = "session"
	Directory = "directory"
)

// Priorities returns the priorities of the scopes.
func Priorities() map[string]float64 {
	return map[string]float64{App: 0.6, User: 0.65, Matter: 0.75, Firm: 0.8, InSession: 0.9, Directory: 1}
}

// Layer selects candidates:
//
//   - files below Directory or, without one, below SCOPE/ENTITY/ and SCOPEs/ENTITY/
//     (for a session below sessions/ID/);
//   - entries of the long-term memory with the key SCOPE/ENTITY or a key below
//     it, or below SCOPEs/ENTITY; for the scope directory, entries below its
//     directory;
//   - for the scope session, the metadata of the session.
//
// Without an entity, the layer has all entities of its scope. An archived
// session has no candidates.
type Layer struct {
	Scope string
	// EntityID is the entity, for a session its ID.
	EntityID *string
	// UserID selects the active sessions of a user instead of EntityID.
	UserID *string
	// Directory is a folder of files.
	Directory *string
	// Pattern restricts the files' paths; nil = all.
	Pattern *file.Glob
	// Priority replaces the priority of the scope.
	Priority *float64
	// MaxTokens bounds the layer's part of the context; 0 = unbounded.
	MaxTokens int
}

// plurals maps scopes to the folders that other programs use for them.
var plurals = map[string]string{User: "users", Matter: "matters", Firm: "firms", Directory: "directories"} //nolint:gochecknoglobals // constant

// place locates candidates of a layer. A folder or prefix is "" for everything, or
// ends with a slash.
type place struct {
	layer     int
	scope     string
	priority  float64
	maxTokens int

	files     bool
	folders   []string
	pattern   *file.Glob
	entries   bool
	prefixes  []string
	keys      []string // in addition to keys below the prefixes
	sessions  []session.Session
	elsewhere bool // everything that is not in another place
}

func (p *place) has(path string) bool {
	return p.files && beginsWith(path, p.folders) && (p.pattern == nil || p.pattern.Match(path))
}

func (p *place) hasKey(key string) bool {
	return p.entries && (beginsWith(key, p.prefixes) || slices.Contains(p.keys, key))
}

func beginsWith(name string, prefixes []string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// defaultLayers returns the layers of a request without layers: a candidate belongs
// to the scope that its path or key begins with, or to app.
func defaultLayers() []Layer {
	root, directories := ".", plurals[Directory]
	return []Layer{{Scope: Directory, Directory: &directories}, {Scope: InSession}, {Scope: Firm}, {Scope: Matter}, {Scope: User}, {Scope: App, Directory: &root}}
}

// places locates the candidates of a request.
func (a *Assembler) places(ctx context.Context, r Request) (places []*place, err error) {
	priorities := Priorities()
	maps.Copy(priorities, r.Priorities)
	layers := r.Layers
	if len(layers) == 0 && len(r.Tabular) == 0 {
		layers = defaultLayers()
	}
	for i, l := range layers {
		priority, known := priorities[l.Scope]
		if !known {
			return nil, unknown("config.layers: unknown scope", l.Scope, slices.Collect(maps.Keys(priorities)), "the scopes are")
		}
		if l.Priority != nil {
			priority = *l.Priority
		}
		p := &place{layer: i, scope: l.Scope, priority: priority, maxTokens: l.MaxTokens, pattern: l.Pattern, files: true, entries: true}
		at, err := l.resolve(r.Variables)
		if err != nil {
			return nil, err
		}
		if l.Scope == InSession {
			var some []*place
			some, err = a.ofSessions(ctx, *p, at, r.UserID)
			places = append(places, some...)
		} else {
			err = p.locate(at)
			places = append(places, p)
		}
		if err != nil {
			return nil, err
		}
		if len(r.Layers) == 0 && l.Scope == App {
			p.entries, p.prefixes, p.elsewhere = true, []string{""}, true
		}
	}
	return places, nil
}

// unknown returns the error for an unknown name, with a suggestion.
func unknown(what, given string, known []string, which string) error {
	slices.Sort(known)
	hint := diag.Suggest(given, known)
	if hint == "" {
		hint = which + " " + strings.Join(known, ", ")
	}
	return tea.Errorf(tea.ValidationError, "%s %q; %s", what, given, hint)
}

// address is the address of a layer with its variables filled in; "" = absent.
type address struct{ entity, user, directory string }

func (l Layer) resolve(variables map[string]any) (at address, err error) {
	for _, part := range []struct {
		name  string
		given *string
		into  *string
	}{{"entity_id", l.EntityID, &at.entity}, {"user_id", l.UserID, &at.user}, {"directory", l.Directory, &at.directory}} {
		if part.given == nil {
			continue
		}
		filled, err := fillIn(*part.given, variables)
		if err != nil {
			return at, err
		}
		if filled == "" {
			return at, tea.Errorf(tea.ValidationError, "the %s of a layer of scope %s is empty; omit it to select all of them", part.name, l.Scope)
		}
		if part.name != "user_id" {
			if filled, err = confine.Clean(filled); err != nil {
				return at, err
			}
		}
		*part.into = filled
	}
	switch {
	case l.Scope == Directory && at.directory == "":
		return at, tea.Errorf(tea.ValidationError, "a layer of scope directory needs its directory")
	case at.entity == ".":
		return at, tea.Errorf(tea.ValidationError, "the entity_id of a layer is not a name: %q", *l.EntityID)
	case l.UserID != nil && (l.Scope != InSession || l.EntityID != nil):
		return at, tea.Errorf(tea.ValidationError, "user_id is for layers of scope session without an entity_id")
	}
	return at, nil
}

// below returns the prefix of everything in a folder.
func below(folder string) string {
	if folder == "." {
		return ""
	}
	return folder + "/"
}

func (p *place) locate(at address) error {
	own := []string{p.scope}
	if plural := plurals[p.scope]; plural != "" && p.scope != Directory {
		own = append(own, plural)
	}
	if p.scope == Directory {
		if at.entity != "" {
			return tea.Errorf(tea.ValidationError, "a layer of scope directory cannot have an entity_id; remove it, and name the folder in directory")
		}
		own = []string{at.directory}
		if root := plurals[Directory]; at.directory != "." && at.directory != root && !strings.HasPrefix(at.directory, root+"/") {
			own = append(own, root+"/"+at.directory)
		}
	}
	for _, name := range own {
		if at.entity != "" {
			name += "/" + at.entity
		}
		p.folders, p.prefixes, p.keys = append(p.folders, below(name)), append(p.prefixes, below(name)), append(p.keys, name)
	}
	if at.directory != "" && p.scope != Directory {
		p.folders = []string{below(at.directory)}
	}
	return nil
}

// ofSessions returns the places of a layer of scope session.
func (a *Assembler) ofSessions(ctx context.Context, p place, at address, userID string) (places []*place, err error) {
	if at.entity != "" {
		s, err := a.o.Sessions.Get(ctx, at.entity)
		switch {
		case tea.AsError(err) != nil && tea.AsError(err).Type == tea.NotFound: // there may be entries
		case err != nil:
			return nil, err
		case s.OfAnother(userID):
			return nil, tea.Errorf(tea.PermissionDenied, "session %q belongs to another user", at.entity)
		case s.Status == session.Archived:
			return nil, nil
		default:
			p.sessions = []session.Session{s}
		}
		return []*place{p.inSession(at.entity, at.directory)}, nil
	}
	if at.user != "" && userID != "" && at.user != userID {
		return nil, tea.Errorf(tea.PermissionDenied, "config.layers: the sessions of %q belong to another user", at.user)
	}
	users := []*string{nil}
	if at.user != "" {
		users = []*string{&at.user}
	} else if userID != "" {
		users = []*string{&userID, new(string)} // and sessions without a user
	}
	var active []session.Session
	for _, user := range users {
		some, _, err := a.o.Sessions.List(ctx, session.Query{UserID: user, Status: session.Active, Limit: maxSessions})
		if err != nil {
			return nil, err
		}
		active = append(active, some...)
	}
	if at.user == "" {
		p.sessions = active
		return []*place{p.inSession("", at.directory)}, nil
	}
	for _, s := range active {
		one := p
		one.sessions = []session.Session{s}
		places = append(places, one.inSession(s.ID, at.directory))
	}
	return places, nil
}

// inSession returns the place with the files and entries of a session, or of all
// sessions.
func (p place) inSession(id, directory string) *place {
	p.folders, p.prefixes = []string{file.SessionPrefix}, []string{InSession + "/"}
	if id != "" {
		p.folders, p.prefixes, p.keys = []string{file.SessionPrefix + id + "/"}, []string{InSession + "/" + id + "/"}, []string{InSession + "/" + id}
	}
	if directory != "" {
		p.folders = []string{below(directory)}
	}
	return &p
}

var variable = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\{([A-Za-z_][A-Za-z0-9_]*)\}`) })

// fillIn replaces {name} by the values of variables.
func fillIn(pattern string, variables map[string]any) (filled string, err error) {
	filled = variable().ReplaceAllStringFunc(pattern, func(match string) string {
		name := match[1 : len(match)-1]
		v, findErr := lookUp(name, variables)
		if findErr != nil {
			err = findErr
			return ""
		}
		switch v := v.(type) {
		case string:
			return v
		case nil, []any, map[string]any:
			err = tea.Errorf(tea.ValidationError, "the variable %q is not a text or a number", name)
			return ""
		default:
			text, encodeErr := value.Encode(v)
			if encodeErr != nil {
				err = encodeErr
			}
			return string(text)
		}
	})
	return filled, err
}

func lookUp(name string, variables map[string]any) (any, error) {
	v, there := variables[name]
	if !there {
		return nil, unknown("unknown variable", name, slices.Collect(maps.Keys(variables)), "the variables are")
	}
	return v, nil
}
