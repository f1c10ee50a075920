package session

import (
	"context"
	"slices"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/filter"

	"github.com/the-edge-agent/tea/plugins/memory/internal/clock"
	"github.com/the-edge-agent/tea/plugins/memory/internal/documents"
	"github.com/the-edge-agent/tea/plugins/memory/store"
)

const (
	// pageSize is the number of documents that are read at a time.
	pageSize = 200
	// maxPage is the page size if few sessions match: a database scans all of them
	// for each page.
	maxPage = 10_000
)

// Get returns a session. It first archives a session that has expired. An
// unknown id is a not_found error.
func (s *Sessions) Get(ctx context.Context, id string) (Session, error) {
	if _, err := s.settle(ctx, s.o.Clock.Now()); err != nil {
		return Session{}, err
	}
	have, err := s.read(ctx, id)
	if err != nil || !have.expired(s.o.Clock.Now()) {
		return have, err
	}
	have, _, err = s.change(ctx, id, (*Session).expire)
	return have, err
}

// Query selects sessions. Zero fields select all.
type Query struct {
	// UserID selects the sessions of a user; nil = all users.
	UserID *string
	Status Status
	Reason string
	// Metadata selects sessions by their metadata.
	Metadata filter.Filter
	// CreatedFrom and UpdatedFrom are inclusive, CreatedTo and UpdatedTo exclusive.
	CreatedFrom, CreatedTo time.Time
	UpdatedFrom, UpdatedTo time.Time
	// After is the cursor of the previous page.
	After string
	Limit int
}

// states adds the conditions that change when a session expires.
func (q Query) states(all []store.Condition) []store.Condition {
	if q.Status != "" {
		all = append(all, store.Condition{Field: "status", Op: store.Eq, Value: string(q.Status)})
	}
	if q.Reason != "" {
		all = append(all, store.Condition{Field: "reason", Op: store.Eq, Value: q.Reason})
	}
	return all
}

func (q Query) conditions() (all []store.Condition) {
	add := func(field string, op store.Op, value string) {
		if value != "" {
			all = append(all, store.Condition{Field: field, Op: op, Value: value})
		}
	}
	if q.UserID != nil {
		all = append(all, store.Condition{Field: "user_id", Op: store.Eq, Value: *q.UserID})
	}
	add("created_at", store.Ge, clock.Text(q.CreatedFrom))
	add("created_at", store.Lt, clock.Text(q.CreatedTo))
	add("updated_at", store.Ge, clock.Text(q.UpdatedFrom))
	add("updated_at", store.Lt, clock.Text(q.UpdatedTo))
	return all
}

// List returns sessions, newest first, and the cursor of the next page, "" at the
// end. It first archives expired sessions. Pages do not shift when sessions are
// created. A damaged session is listed if the query selects its readable parts.
func (s *Sessions) List(ctx context.Context, q Query) (found []Session, next string, err error) {
	if _, err := s.settle(ctx, s.o.Clock.Now()); err != nil {
		return nil, "", err
	}
	conditions, after := q.conditions(), q.After
	if !s.o.ReadOnly {
		conditions = q.states(conditions)
	}
	size := q.Limit + 1
	if len(q.Metadata) > 0 || s.o.ReadOnly {
		size = max(size, pageSize) // the database does not evaluate all conditions
	}
	for ; ; size = max(size, min(8*size, maxPage)) {
		from := store.Condition{Field: "place", Op: store.Lt, Value: after}
		if after == "" {
			from = store.Condition{Field: "place", Op: store.Gt, Value: ""} // a damaged body has no place
		}
		where := slices.Concat(conditions, []store.Condition{from})
		page, err := s.o.Documents.Query(ctx, store.DocumentQuery{Kind: Kind, Where: where, OrderBy: "place", Descending: true, Limit: size})
		if err != nil {
			return nil, "", err
		}
		for _, d := range page {
			have, _ := s.decode(d)
			after = have.place
			if !filter.Matches(have.Metadata, q.Metadata) || q.Status != "" && have.Status != q.Status || q.Reason != "" && have.Reason != q.Reason {
				continue
			}
			if len(found) == q.Limit {
				return found, found[q.Limit-1].place, nil
			}
			found = append(found, have)
		}
		if len(page) < size {
			return found, "", nil
		}
	}
}

// Hidden returns which of these sessions are archived, damaged or, if a user is
// given, belong to another user. The others are readable or do not exist.
func (s *Sessions) Hidden(ctx context.Context, ids []string, userID string) (map[string]bool, error) {
	if _, err := s.settle(ctx, s.o.Clock.Now()); err != nil {
		return nil, err
	}
	hidden := map[string]bool{}
	for some := range slices.Chunk(ids, pageSize) {
		wanted := make([]any, len(some))
		for i, id := range some {
			wanted[i] = id
		}
		found, err := s.o.Documents.Query(ctx, store.DocumentQuery{
			Kind: Kind, Limit: pageSize, Where: []store.Condition{{Field: "id", Op: store.In, Value: wanted}},
		})
		if err != nil {
			return nil, err
		}
		for _, d := range found {
			have, err := s.decode(d)
			hidden[d.ID] = err != nil || have.Status == Archived || have.OfAnother(userID)
		}
	}
	return hidden, nil
}

// View returns the table sessions for queries of workflows. It shows an expired
// session as archived.
func (s *Sessions) View(dialect store.Dialect) store.View {
	field := func(name string) string { return documents.Field(dialect, name) }
	over := field("status") + " = '" + string(Active) + "' AND " + field("expires_at") + " <= '" + clock.Text(s.o.Clock.Now()) + "'"
	return documents.View(dialect, "sessions", Kind, []documents.Shown{
		{Name: "session_id"},
		{Name: "user_id", Field: "user_id"},
		{Name: "status", Is: "CASE WHEN " + over + " THEN '" + string(Archived) + "' ELSE " + field("status") + " END"},
		{Name: "reason", Is: "CASE WHEN " + over + " THEN '" + Expired + "' ELSE " + field("reason") + " END"},
		{Name: "metadata", Field: "metadata", As: documents.Object},
		{Name: "created_at", Field: "created_at", As: documents.Instant},
		{Name: "updated_at", Field: "updated_at", As: documents.Instant},
		{Name: "expires_at", Field: "expires_at", As: documents.Instant},
		{Name: "archived_at", Field: "archived_at", As: documents.Instant},
	})
}
