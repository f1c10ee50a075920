package place

import (
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

const (
	// Sessions begins the paths of the files of sessions.
	Sessions = "sessions/"
	// Archive begins the paths of archived files, before their original path.
	Archive = "archive/"
)

// Place is a resolved path.
type Place struct {
	// Session is the session of the path, "" = none.
	Session string
	// Path is the path within the session, or the full path.
	Path string
	// Archived reports whether the path is in the archive.
	Archived bool
}

// Of checks a path; see [confine.Clean]. A file of a session has a session and a
// path within it, or a full path.
func Of(path, session string) (Place, error) {
	clean, err := confine.Clean(path)
	if err != nil {
		return Place{}, err
	}
	if clean == "." {
		return Place{}, tea.Errorf(tea.ValidationError, "the path %q does not name a file", path)
	}
	inside, archived := strings.CutPrefix(clean, Archive+Sessions)
	if !archived {
		if inside, _ = strings.CutPrefix(clean, Sessions); inside == clean {
			return Place{Session: session, Path: clean}, nil
		}
	}
	id, rest, _ := strings.Cut(inside, "/")
	switch {
	case id == "" || rest == "":
		return Place{}, tea.Errorf(tea.ValidationError, "the path %q does not name a file; files of sessions are sessions/ID/PATH", path)
	case session != "" && session != id:
		return Place{}, tea.Errorf(tea.ValidationError, "the path %q is not in the session %q", path, session)
	}
	return Place{Session: id, Path: rest, Archived: archived}, nil
}

// Whole returns the full path for reading.
func (p Place) Whole() string {
	if p.Session == "" {
		return p.Path
	}
	return Sessions + p.Session + "/" + p.Path
}
