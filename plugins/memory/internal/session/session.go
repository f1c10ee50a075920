package session

import (
	"context"
	"encoding/json"
	"errors"
	"hash/maphash"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/confine"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/file"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

// Kind is the kind of the documents.
const Kind = "session"

// Status is the status of a session.
type Status string

// The states of a session.
const (
	Active   Status = "active"
	Archived Status = "archived"
)

// The reasons of archiving. Other words are allowed.
const (
	Ended   = "ended"
	Expired = "expired"
	Manual  = "manual"
)

// ErrDamaged is wrapped by the error of a call for a damaged session.
var ErrDamaged = errors.New("damaged")

const (
	maxID   = 200
	stripes = 64
)

// Options configure Sessions. Documents, Files and Clock are needed.
type Options struct {
	Documents store.MetadataStore
	Files     *file.Files
	Clock     *clock.Clock
	// ReadOnly reports whether the documents are read-only. An expired session is then
	// archived in results, but not in the documents.
	ReadOnly bool
	// Shared reports whether other processes write the documents, too.
	Shared bool
}

// Sessions are the sessions of a memory. There is one for each database. It is
// safe for concurrent use.
type Sessions struct {
	o    Options
	seed maphash.Seed
	// files is locked, by session, for reading while its files are written and
	// for writing while the session changes.
	files [stripes]sync.RWMutex
	due   deadline
	// expiring are the active sessions that expire; it is used if the documents are
	// read-only.
	expiring atomic.Pointer[map[string]time.Time]
}

// New creates Sessions. The caller closes what the options name.
func New(o Options) *Sessions { return &Sessions{o: o, seed: maphash.MakeSeed()} }

func (s *Sessions) lock(id string) *sync.RWMutex {
	return &s.files[maphash.String(s.seed, id)%stripes]
}

// Session is a snapshot of a session.
type Session struct {
	ID, UserID string
	Status     Status
	// Reason is the reason of archiving; "" for an active session.
	Reason string
	// Metadata is a JSON object, or nil for none.
	Metadata json.RawMessage
	// TTL is the time from creation or restoration to expiry; 0 = never.
	TTL                  time.Duration
	CreatedAt, UpdatedAt time.Time
	// ExpiresAt is zero for a session that never expires, ArchivedAt for an active
	// session.
	ExpiresAt, ArchivedAt time.Time

	// Damaged reports whether parts of the document cannot be read; they are zero.
	Damaged bool

	place   string // orders sessions by creation
	key     string // the idempotency key of its creation
	version int64
}

// Prefix returns the prefix of the paths of the session's files.
func (s Session) Prefix() string {
	prefix := file.SessionPrefix + s.ID + "/"
	if s.Status == Archived {
		return file.ArchivePrefix + prefix
	}
	return prefix
}

// OfAnother reports whether the session belongs to a user other than userID; ""
// means any user.
func (s Session) OfAnother(userID string) bool {
	return userID != "" && s.UserID != "" && s.UserID != userID
}

// expired reports whether an active session has expired.
func (s Session) expired(now time.Time) bool {
	return s.Status == Active && !s.ExpiresAt.IsZero() && !s.ExpiresAt.After(now)
}

// early reports whether the session was archived by a clock that was ahead, and
// has not expired by this clock.
func (s Session) early(now time.Time) bool {
	return s.Status == Archived && s.Reason == Expired && s.ExpiresAt.After(now) && !s.ArchivedAt.Before(s.ExpiresAt)
}

// body is a session as a document.
type body struct {
	Place      string          `json:"place"`
	UserID     string          `json:"user_id"`
	Status     Status          `json:"status"`
	Reason     string          `json:"reason,omitempty"`
	Metadata   json.RawMessage `json:"metadata,omitempty"`
	TTL        int64           `json:"ttl_us,omitempty"`
	CreatedAt  string          `json:"created_at"`
	UpdatedAt  string          `json:"updated_at"`
	ExpiresAt  string          `json:"expires_at,omitempty"`
	ArchivedAt string          `json:"archived_at,omitempty"`
	Key        string          `json:"key,omitempty"`
}

func (s Session) change() (store.Change, error) {
	text, err := json.Marshal(body{
		Place: s.place, UserID: s.UserID, Status: s.Status, Reason: s.Reason, Metadata: s.Metadata, TTL: s.TTL.Microseconds(), CreatedAt: clock.Text(s.CreatedAt),
		UpdatedAt: clock.Text(s.UpdatedAt), ExpiresAt: clock.Text(s.ExpiresAt), ArchivedAt: clock.Text(s.ArchivedAt), Key: s.key,
	})
	c := store.Change{Kind: Kind, ID: s.ID, Body: text, If: s.version}
	if s.version == 0 {
		c.If = store.New
	}
	return c, err
}

// decode returns a session, and an error if it is damaged.
func decode(d store.Document) (Session, error) {
	var b body
	damage := json.Unmarshal(d.Body, &b)
	s := Session{ID: d.ID, UserID: b.UserID, Status: b.Status, Reason: b.Reason, Metadata: b.Metadata, TTL: time.Duration(b.TTL) * time.Microsecond, place: b.Place, key: b.Key, version: d.Version}
	for text, into := range map[*string]*time.Time{&b.CreatedAt: &s.CreatedAt, &b.UpdatedAt: &s.UpdatedAt, &b.ExpiresAt: &s.ExpiresAt, &b.ArchivedAt: &s.ArchivedAt} {
		var err error
		if *into, err = clock.FromText(*text); err != nil {
			damage = err
		}
	}
	if damage != nil {
		s.Damaged = true
		return s, tea.Errorf(tea.InternalError, "the description of session %q is %w: %w", d.ID, ErrDamaged, damage)
	}
	return s, nil
}

// checkID refuses an id that cannot be the name of a folder.
func checkID(id string) error {
	clean, err := confine.Clean(id)
	switch {
	case err != nil:
		return tea.Errorf(tea.AsError(err).Type, "the session_id: %w", err)
	case clean != id || clean == "." || strings.Contains(id, "/") || len(id) > maxID:
		return tea.Errorf(tea.ValidationError, "the session_id %q is not a plain name of at most %d bytes", id, maxID)
	}
	return nil
}

// read reads the session from the database.
func (s *Sessions) read(ctx context.Context, id string) (Session, error) {
	if err := checkID(id); err != nil {
		return Session{}, err
	}
	d, err := s.o.Documents.Get(ctx, Kind, id)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return Session{}, tea.Errorf(tea.NotFound, "there is no session %q", id)
	case err != nil:
		return Session{}, err
	}
	return s.decode(d)
}

// decode reads a session. If the documents are read-only, it archives an expired
// session in the result.
func (s *Sessions) decode(d store.Document) (Session, error) {
	have, err := decode(d)
	if now := s.o.Clock.Now(); s.o.ReadOnly && err == nil && have.expired(now) {
		have.archive(Expired, now)
	}
	return have, err
}
