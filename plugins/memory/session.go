package memory

import (
	"context"
	"encoding/json"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
)

func sessionActions() []tea.Action {
	return []tea.Action{
		tea.NewMethod("session.create", "Creates a session.", writes((*Memory).SessionCreate), tea.Idempotent()),
		tea.NewMethod("session.end", "Ends a session: it is archived with its files.", writes((*Memory).SessionEnd), tea.Idempotent()),
		tea.NewMethod("session.archive", "Archives a session and its files; nothing is deleted.", writes((*Memory).SessionArchive), tea.Idempotent()),
		tea.NewMethod("session.restore", "Makes an archived session and its files active again.", writes((*Memory).SessionRestore), tea.Idempotent()),
		tea.NewMethod("session.get", "Describes a session.", (*Memory).SessionGet, tea.Idempotent(), tea.Reads()),
		tea.NewMethod("session.list", "Lists sessions, the newest first.", (*Memory).SessionList, tea.Idempotent(), tea.Reads()),
	}
}

// SessionView is a session as actions show it.
type SessionView struct {
	SessionID  string          `json:"session_id"`
	UserID     string          `json:"user_id"`
	Status     string          `json:"status" doc:"active or archived"`
	Reason     string          `json:"reason" doc:"why it was archived: ended, expired, manual or the reason of session.archive; empty if it is active"`
	Metadata   json.RawMessage `json:"metadata" doc:"null if there is none"`
	TTL        float64         `json:"ttl" doc:"seconds; 0 = unlimited"`
	CreatedAt  string          `json:"created_at"`
	UpdatedAt  string          `json:"updated_at"`
	ExpiresAt  *string         `json:"expires_at" doc:"null if it does not expire"`
	ArchivedAt *string         `json:"archived_at" doc:"null if it is active"`
	FilesPath  string          `json:"files_path" doc:"beginning of the paths of its files"`
	Damaged    bool            `json:"damaged,omitempty" doc:"true if its row in the database is damaged; the fields that cannot be read are empty, and other actions on the session fail"`
}

func viewOf(s session.Session) SessionView {
	return SessionView{
		SessionID: s.ID, UserID: s.UserID, Status: string(s.Status), Reason: s.Reason, Metadata: orNull(s.Metadata), TTL: s.TTL.Seconds(),
		CreatedAt: clock.Text(s.CreatedAt), UpdatedAt: clock.Text(s.UpdatedAt), ExpiresAt: instant(s.ExpiresAt), ArchivedAt: instant(s.ArchivedAt), FilesPath: s.Prefix(), Damaged: s.Damaged,
	}
}

// instant returns nil for the zero time.
func instant(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := clock.Text(t)
	return &text
}

// SessionResult is the result of an action on one session.
type SessionResult struct {
	Success bool `json:"success"`
	SessionView
}

// SessionChangedResult is the result of an action that can change a session.
type SessionChangedResult struct {
	Success bool `json:"success"`
	Changed bool `json:"changed" doc:"false if it was in this state before"`
	SessionView
}

// SessionCreateParams are the parameters of session.create.
type SessionCreateParams struct {
	SessionID string          `json:"session_id,omitempty" doc:"name of the session, which must not exist; default a new name"`
	UserID    string          `json:"user_id,omitempty" doc:"owner of the session"`
	TTL       *float64        `json:"ttl,omitempty" minimum:"0" doc:"seconds after which it is archived; 0 = never; default settings.memory.session_ttl"`
	Metadata  json.RawMessage `json:"metadata,omitempty" doc:"object to filter by"`
}

// SessionCreate is the action session.create.
func (m *Memory) SessionCreate(ctx context.Context, req *tea.Request, p SessionCreateParams) (*SessionResult, error) {
	given := m.folder.settings.SessionTTL
	if p.TTL != nil {
		given = *p.TTL
	}
	ttl, err := seconds("ttl", given)
	if err == nil {
		err = checkName("user_id", p.UserID)
	}
	if err != nil {
		return nil, err
	}
	made, err := m.folder.sessions.Create(ctx, session.Draft{ID: p.SessionID, UserID: p.UserID, TTL: ttl, Metadata: objectOrNone(p.Metadata), Key: req.IdempotencyKey})
	if err != nil {
		return nil, err
	}
	return &SessionResult{Success: true, SessionView: viewOf(made)}, nil
}

// SessionParams name a session.
type SessionParams struct {
	SessionID string `json:"session_id" minLength:"1"`
}

// SessionEnd is the action session.end.
func (m *Memory) SessionEnd(ctx context.Context, _ *tea.Request, p SessionParams) (*SessionChangedResult, error) {
	s, changed, err := m.folder.sessions.End(ctx, p.SessionID)
	return changedResult(s, changed, err)
}

func changedResult(s session.Session, changed bool, err error) (*SessionChangedResult, error) {
	if err != nil {
		return nil, err
	}
	return &SessionChangedResult{Success: true, Changed: changed, SessionView: viewOf(s)}, nil
}

// SessionArchiveParams are the parameters of session.archive.
type SessionArchiveParams struct {
	SessionID string `json:"session_id" minLength:"1"`
	Reason    string `json:"reason,omitempty" default:"manual" minLength:"1" maxLength:"200" doc:"ended, expired, manual or another text"`
}

// SessionArchive is the action session.archive.
func (m *Memory) SessionArchive(ctx context.Context, _ *tea.Request, p SessionArchiveParams) (*SessionChangedResult, error) {
	s, changed, err := m.folder.sessions.Archive(ctx, p.SessionID, p.Reason)
	return changedResult(s, changed, err)
}

// SessionRestoreParams are the parameters of session.restore.
type SessionRestoreParams struct {
	SessionID string   `json:"session_id" minLength:"1"`
	TTL       *float64 `json:"ttl,omitempty" minimum:"0" doc:"seconds until it expires; 0 = never; default the ttl of its creation"`
}

// SessionRestore is the action session.restore.
func (m *Memory) SessionRestore(ctx context.Context, _ *tea.Request, p SessionRestoreParams) (*SessionChangedResult, error) {
	var ttl *time.Duration
	if p.TTL != nil {
		given, err := seconds("ttl", *p.TTL)
		if err != nil {
			return nil, err
		}
		ttl = &given
	}
	s, changed, err := m.folder.sessions.Restore(ctx, p.SessionID, ttl)
	return changedResult(s, changed, err)
}

// SessionGet is the action session.get.
func (m *Memory) SessionGet(ctx context.Context, _ *tea.Request, p SessionParams) (*SessionResult, error) {
	s, err := m.folder.sessions.Get(ctx, p.SessionID)
	if err != nil {
		return nil, err
	}
	return &SessionResult{Success: true, SessionView: viewOf(s)}, nil
}

// SessionListParams are the parameters of session.list.
type SessionListParams struct {
	UserID        *string        `json:"user_id,omitempty" doc:"default all users"`
	Status        string         `json:"status,omitempty" enum:"active,archived"`
	Reason        string         `json:"reason,omitempty" doc:"why it was archived"`
	Metadata      map[string]any `json:"metadata,omitempty" doc:"values that the metadata must have; a list means any of its values; an object of operators compares, such as {\"n\": {\"gte\": 5, \"lt\": 10}}; operators: eq, ne, gt, gte, lt, lte, in, not_in, contains, startswith, endswith, exists"`
	CreatedAfter  string         `json:"created_after,omitempty" doc:"RFC 3339, inclusive"`
	CreatedBefore string         `json:"created_before,omitempty" doc:"RFC 3339, exclusive"`
	UpdatedAfter  string         `json:"updated_after,omitempty" doc:"RFC 3339, inclusive"`
	UpdatedBefore string         `json:"updated_before,omitempty" doc:"RFC 3339, exclusive"`
	Limit         int            `json:"limit,omitempty" default:"100" minimum:"1" maximum:"1000"`
	Cursor        string         `json:"cursor,omitempty" doc:"next_cursor of the previous page"`
}

// SessionListResult is the result of session.list.
type SessionListResult struct {
	Success    bool          `json:"success"`
	Sessions   []SessionView `json:"sessions" doc:"newest first"`
	Count      int           `json:"count"`
	NextCursor string        `json:"next_cursor" doc:"empty on the last page"`
}

// SessionList is the action session.list.
func (m *Memory) SessionList(ctx context.Context, _ *tea.Request, p SessionListParams) (*SessionListResult, error) {
	q := session.Query{UserID: p.UserID, Status: session.Status(p.Status), Reason: p.Reason, After: p.Cursor, Limit: p.Limit}
	for _, given := range []struct {
		name, text string
		into       *time.Time
	}{
		{"created_after", p.CreatedAfter, &q.CreatedFrom},
		{"created_before", p.CreatedBefore, &q.CreatedTo},
		{"updated_after", p.UpdatedAfter, &q.UpdatedFrom},
		{"updated_before", p.UpdatedBefore, &q.UpdatedTo},
	} {
		var err error
		if *given.into, err = clock.FromText(given.text); err != nil {
			return nil, tea.Errorf(tea.ValidationError, "%s must be an RFC 3339 time such as 2026-03-01T12:00:00Z, not %q", given.name, given.text)
		}
	}
	var err error
	if q.Metadata, err = filter.Parse("metadata", p.Metadata); err != nil {
		return nil, err
	}
	found, next, err := m.folder.sessions.List(ctx, q)
	if err != nil {
		return nil, err
	}
	r := &SessionListResult{Success: true, Sessions: make([]SessionView, len(found)), Count: len(found), NextCursor: next}
	for i, s := range found {
		r.Sessions[i] = viewOf(s)
	}
	return r, nil
}
