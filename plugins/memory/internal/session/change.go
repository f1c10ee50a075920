package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"strings"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	maxUser   = 1000
	maxReason = 200
	idLength  = 26
)

// Draft is a session to be created.
type Draft struct {
	// ID is the name; "" creates a new name.
	ID, UserID string
	// TTL is the time to expiry; 0 = never.
	TTL time.Duration
	// Metadata is a JSON object, or nil for none.
	Metadata json.RawMessage
	// Key is the idempotency key: a repeated call returns the session of the first
	// call. "" = the call is never repeated.
	Key string
}

// Create creates an active session. It returns a validation_error if the ID
// exists, unless the session was created with the same Key.
func (s *Sessions) Create(ctx context.Context, d Draft) (Session, error) {
	if d.ID == "" {
		d.ID = newID(d.Key)
	}
	metadata, err := checked(d)
	if err != nil {
		return Session{}, err
	}
	now := s.o.Clock.Now().Truncate(time.Microsecond)
	made := Session{ID: d.ID, UserID: d.UserID, Status: Active, Metadata: metadata, CreatedAt: now, UpdatedAt: now, place: clock.Text(now) + "/" + d.ID, key: d.Key}
	made.live(d.TTL, now)
	c, err := made.change()
	if err != nil {
		return Session{}, err
	}
	err = s.o.Documents.Apply(ctx, c)
	s.due.lower(made.ExpiresAt)
	if errors.Is(err, store.ErrConflict) {
		have, readErr := s.Get(ctx, d.ID)
		if readErr == nil && d.Key != "" && have.key == d.Key {
			return have, nil
		}
		return Session{}, errors.Join(tea.Errorf(tea.ValidationError, "session %q already exists; omit session_id for a new name", d.ID), readErr)
	}
	made.version = 1
	return made, err
}

// newID returns the name of a new session, the same for the same key.
func newID(key string) string {
	if key == "" {
		return strings.ToLower(rand.Text())
	}
	sum := sha256.Sum256([]byte("session.create " + key))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:])[:idLength])
}

// checked checks a draft and returns its metadata in canonical form.
func checked(d Draft) (json.RawMessage, error) {
	if err := checkID(d.ID); err != nil {
		return nil, err
	}
	if len(d.UserID) > maxUser {
		return nil, tea.Errorf(tea.ValidationError, "the user_id is longer than %d bytes", maxUser)
	}
	if d.TTL < 0 {
		return nil, tea.Errorf(tea.ValidationError, "the ttl is negative")
	}
	if d.Metadata == nil {
		return nil, nil
	}
	v, err := value.Decode(d.Metadata)
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the metadata: %w", err)
	}
	if _, ok := v.(map[string]any); !ok {
		return nil, tea.Errorf(tea.ValidationError, "the metadata is not an object")
	}
	return value.Encode(v)
}

// live sets the expiry of a session, starting now.
func (s *Session) live(ttl time.Duration, now time.Time) {
	s.TTL, s.ExpiresAt = ttl, time.Time{}
	if ttl > 0 {
		s.ExpiresAt = now.Add(max(ttl, time.Microsecond)).Truncate(time.Microsecond)
	}
}

// End archives a session because it has ended. It does not change an archived
// session; changed reports whether this call archived it.
func (s *Sessions) End(ctx context.Context, id string) (ended Session, changed bool, err error) {
	return s.Archive(ctx, id, Ended)
}

// Archive hides a session and its files; see End.
func (s *Sessions) Archive(ctx context.Context, id, reason string) (archived Session, changed bool, err error) {
	if reason == "" || len(reason) > maxReason {
		return Session{}, false, tea.Errorf(tea.ValidationError, "the reason must have 1 to %d bytes, not %d", maxReason, len(reason))
	}
	return s.change(ctx, id, func(have *Session, now time.Time) {
		if have.expired(now) {
			reason = Expired
		}
		have.archive(reason, now)
	})
}

func (s *Session) archive(reason string, now time.Time) {
	if s.Status == Active {
		s.Status, s.Reason, s.ArchivedAt = Archived, reason, now
	}
}

// Restore makes an archived session and its files active again, with the TTL of
// its creation or a new TTL. It does not change an active session.
func (s *Sessions) Restore(ctx context.Context, id string, ttl *time.Duration) (restored Session, changed bool, err error) {
	return s.change(ctx, id, func(have *Session, now time.Time) {
		if have.expired(now) {
			have.archive(Expired, now)
		}
		if have.Status == Active {
			return
		}
		have.Status, have.Reason, have.ArchivedAt = Active, "", time.Time{}
		if ttl == nil {
			ttl = &have.TTL
		}
		have.live(*ttl, now)
	})
}

// change runs fn on a session, and writes the session and moves its files.
func (s *Sessions) change(ctx context.Context, id string, fn func(have *Session, now time.Time)) (Session, bool, error) {
	lock := s.lock(id)
	lock.Lock()
	defer lock.Unlock()
	before, err := s.read(ctx, id)
	if err != nil {
		return Session{}, false, err
	}
	now := s.o.Clock.Now().Truncate(time.Microsecond)
	after := before
	if fn(&after, now); after.Status == before.Status && after.ExpiresAt.Equal(before.ExpiresAt) {
		return before, false, nil
	}
	after.UpdatedAt = now
	var changes []store.Change
	if from, to := before.Prefix(), after.Prefix(); from != to {
		if changes, err = s.o.Files.Moves(ctx, from, to); err != nil {
			return Session{}, false, err
		}
	}
	c, err := after.change()
	if err != nil {
		return Session{}, false, err
	}
	err = s.o.Documents.Apply(ctx, append(changes, c)...)
	if after.Status == Active {
		s.due.lower(after.ExpiresAt)
	}
	if err != nil {
		return Session{}, false, err
	}
	after.version++
	return after, true, nil
}

// Write runs fn while the session is active and cannot be archived; fn gets the
// prefix of the session's files and can write below it. An archived session is
// a validation_error.
func (s *Sessions) Write(ctx context.Context, id string, fn func(prefix string) error) error {
	if _, err := s.Get(ctx, id); err != nil { // which archives expired sessions
		return err
	}
	lock := s.lock(id)
	lock.RLock()
	defer lock.RUnlock()
	have, err := s.read(ctx, id)
	if err != nil {
		return err
	}
	if have.Status != Active {
		return tea.Errorf(tea.ValidationError, "session %q is archived (%s), and so are its files; session.restore makes it active again", id, have.Reason)
	}
	return fn(have.Prefix())
}

// Read runs fn while the session does not change; fn gets the prefix of its
// files, archived or not.
func (s *Sessions) Read(ctx context.Context, id string, fn func(prefix string) error) error {
	if _, err := s.Get(ctx, id); err != nil {
		return err
	}
	lock := s.lock(id)
	lock.RLock()
	defer lock.RUnlock()
	have, err := s.read(ctx, id)
	if err != nil {
		return err
	}
	return fn(have.Prefix())
}
