package session_test

import (
	"context"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/plugins/memory/internal/session"
	"github.com/the-edge-agent/tea/plugins/memory/store"
	tea "github.com/the-edge-agent/tea/sdk"
)

// TestADamagedSessionDoesNotHideOthers damages a time of two sessions, which sort
// before and after all times, and the whole description of another one.
func TestADamagedSessionDoesNotHideOthers(t *testing.T) {
	each(t, func(t *testing.T, d *device) {
		for i, id := range []string{"a", "b", "c", "d", "e"} {
			d.Pass(time.Duration(i) * time.Second)
			d.create(t, session.Draft{ID: id, UserID: "ann", TTL: time.Duration(i+1) * time.Hour})
		}
		damage := func(id, old, instead string) {
			err := d.Engine.Write(t.Context(), func(ctx context.Context, tx store.Tx) error {
				_, err := tx.Exec(ctx, "UPDATE documents SET body = replace(body, ?, ?) WHERE kind = ? AND id = ?", old, instead, session.Kind, id)
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
		damage("a", `"expires_at":"20`, `"expires_at":"!!`)
		damage("b", `"expires_at":"20`, `"expires_at":"xx`)
		damage("c", `{`, `X`)
		d = d.reopen(t)

		list := func(q session.Query) (ids string) {
			found, next, err := d.List(t.Context(), q)
			if err != nil || next != "" {
				t.Fatal(next, err)
			}
			for _, s := range found {
				if ids += s.ID; s.Damaged {
					ids += "!"
				}
				ids += " "
			}
			return ids
		}
		want(t, "all", list(session.Query{Limit: 5}), "e d b! a! ")
		user := "ann"
		want(t, "of a user", list(session.Query{UserID: &user, Limit: 5}), "e d b! a! ")
		for _, id := range []string{"a", "b", "c"} {
			_, err := d.Get(t.Context(), id)
			fails(t, "get", err, tea.InternalError)
		}
		d.Pass(4*time.Hour + time.Minute)
		want(t, "active", list(session.Query{Status: session.Active, Limit: 5}), "e b! a! ")
		d.Pass(6 * time.Hour)
		want(t, "active after the last one expired", list(session.Query{Status: session.Active, Limit: 5}), "b! a! ")
	})
}
