package place

import (
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/confine"
)

const (
	// Sessions begins the paths of the files of sessions.
	Sessions = "sessions/"
	// Archive begins the paths of archived files: their path before is what
	// follows.
	Archive = "archive/"
)

// Place is where a path leads.
type Place struct {
	// Session is the one that the path is in, "" for none.
	Session string
	// Path is that within the session, or the whole one.
	Path string
	// Archived says that the path is that of an archived session's file.
	Archived bool
}

// Of checks a path; see [confine.Clean]. A file of a session is named by the
// session and its path in it, or by its whole path.
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

// Whole is the path for a reader, who finds the file wherever it is.
func (p Place) Whole() string {
	if p.Session == "" {
		return p.Path
	}
	return Sessions + p.Session + "/" + p.Path
}
