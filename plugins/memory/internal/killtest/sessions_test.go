package killtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
)

const (
	sessionFiles = 3 // of each session
	sessionsKept = 2 // of each worker; older ones are looked at no more

	active   = 1
	archived = 2
)

// sessionArea begins sessions with files, archives and restores them.
type sessionArea struct {
	gens     generations
	sessions [workers][]*killedSession
}

type killedSession struct {
	id     string
	status cell
	files  [sessionFiles]cell
}

func (a *sessionArea) write(ctx context.Context, p *plugin, worker int, r *rand.Rand) error {
	mine := a.sessions[worker]
	if len(mine) == 0 || r.IntN(12) == 0 {
		s := &killedSession{id: fmt.Sprintf("s%d-%d", worker, a.gens.next(worker))}
		if a.sessions[worker] = append(mine, s); len(mine) == sessionsKept {
			a.sessions[worker] = a.sessions[worker][1:]
		}
		s.status.send(active)
		if err := p.change(ctx, "session.create", map[string]any{"session_id": s.id, "user_id": "kim"}, nil); err != nil {
			return err
		}
		s.status.ack()
		return nil
	}
	return a.useSession(ctx, p, worker, mine[r.IntN(len(mine))], r)
}

func (a *sessionArea) useSession(ctx context.Context, p *plugin, worker int, s *killedSession, r *rand.Rand) error {
	switch {
	case s.status.acked == 0:
		return nil // it was killed before it began
	case s.status.acked == archived:
		s.status.send(active)
		if err := p.change(ctx, "session.restore", map[string]any{"session_id": s.id}, nil); err != nil {
			return err
		}
		s.status.ack()
		return nil
	case r.IntN(3) == 0:
		s.status.send(archived)
		if err := p.change(ctx, []string{"session.archive", "session.end"}[r.IntN(2)], map[string]any{"session_id": s.id}, nil); err != nil {
			return err
		}
		s.status.ack()
		return nil
	}
	gen, key := a.gens.next(worker), r.IntN(sessionFiles)
	s.files[key].send(gen)
	err := p.change(ctx, "memory.file_store", map[string]any{
		"path": fmt.Sprintf("%d.md", key), "session_id": s.id, "content": fileContent(gen), "metadata": object{Gen: gen},
	}, nil)
	if err == nil {
		s.files[key].ack()
	}
	return err
}

func (a *sessionArea) check(ctx context.Context, p *plugin) error {
	for worker := range workers {
		for _, s := range a.sessions[worker] {
			if err := s.check(ctx, p); err != nil {
				return fmt.Errorf("session %s: %w", s.id, err)
			}
		}
	}
	return nil
}

func (s *killedSession) check(ctx context.Context, p *plugin) error {
	var view struct {
		Status string `json:"status"`
	}
	err := p.call(ctx, "session.get", map[string]any{"session_id": s.id}, &view)
	if e := new(tea.Error); errors.As(err, &e) && e.Type == tea.NotFound {
		_, err := s.status.see(0)
		return err
	}
	if err != nil {
		return err
	}
	if _, err := s.status.see(map[string]int64{"active": active, "archived": archived}[view.Status]); err != nil {
		return err
	}
	// All of its files are where it is, and each is there once.
	there, err := filesIn(ctx, p, map[string]any{"prefix": "sessions/" + s.id + "/", "limit": 1000})
	if err != nil {
		return err
	}
	inArchive, err := filesIn(ctx, p, map[string]any{"prefix": "archive/sessions/" + s.id + "/", "limit": 1000})
	if err != nil {
		return err
	}
	if here, elsewhere := len(there), len(inArchive); (view.Status == "active" && elsewhere > 0) || (view.Status == "archived" && here > 0) {
		return fmt.Errorf("it is %s, with %d files among the active ones and %d in the archive", view.Status, here, elsewhere)
	}
	for path, gen := range inArchive {
		there[strings.TrimPrefix(path, "archive/")] = gen
	}
	for key := range s.files {
		path := fmt.Sprintf("sessions/%s/%d.md", s.id, key)
		if _, err := s.files[key].see(there[path]); err != nil {
			return fmt.Errorf("file %s: %w", path, err)
		}
	}
	return nil
}

func (*sessionArea) blobs(context.Context, *plugin) ([]string, error) { return nil, nil }
