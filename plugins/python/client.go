package python

import (
	"cmp"
	"context"
	"os"
	"sync"
	"time"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/childproc"
)

// Client has the workers of one set of settings. It is safe for concurrent use.
type Client struct {
	settings Settings
	// slots bounds the workers.
	slots chan struct{}

	mu    sync.Mutex
	idle  []*worker
	guard *childproc.Guard // nil before the first worker, or without a shell
	mark  string

	installing sync.Mutex
	found      string // the interpreter; "" before the first call
	packages   string // the directory of the installed requirements
}

func open(s tea.Settings) (*Client, error) {
	c := &Client{}
	if err := s.Decode(settingsKey, &c.settings); err != nil {
		return nil, err
	}
	set := &c.settings
	set.TimeoutSeconds, set.MemoryMB = cmp.Or(set.TimeoutSeconds, 60), cmp.Or(set.MemoryMB, 1024)
	set.Workers = cmp.Or(set.Workers, 4)
	c.slots = make(chan struct{}, set.Workers)
	return c, nil
}

// dir returns the working directory of workers.
func (c *Client) dir() string { return cmp.Or(c.settings.Dir, string(os.PathSeparator)) }

// do runs a job in a worker.
func (c *Client) do(ctx context.Context, req *tea.Request, params any) (any, error) {
	if !c.settings.Enabled {
		return nil, tea.Errorf(tea.PermissionDenied, "%s is disabled; set settings.python.enabled: true to allow workflows to run Python", req.Action)
	}
	v, err := value.From(params)
	if err != nil {
		return nil, err
	}
	job, err := value.Encode(v)
	if err != nil {
		return nil, err
	}
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	w, err := c.take(ctx)
	if err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeout(ctx, time.Duration(c.settings.TimeoutSeconds*float64(time.Second)))
	defer cancel()
	result, healthy, err := w.run(limited, req, job)
	if healthy {
		c.mu.Lock()
		c.idle = append(c.idle, w)
		c.mu.Unlock()
	} else {
		w.close()
	}
	if err != nil && ctx.Err() == nil && limited.Err() != nil {
		return nil, &tea.Error{Type: tea.Timeout, Message: "the code did not end in time (settings.python.timeout_seconds)"}
	}
	return result, err
}

// take returns an idle worker, or starts one.
func (c *Client) take(ctx context.Context) (*worker, error) {
	c.mu.Lock()
	for len(c.idle) > 0 {
		w := c.idle[len(c.idle)-1]
		c.idle = c.idle[:len(c.idle)-1]
		select {
		case <-w.exited: // the system may have killed it
			c.mu.Unlock()
			w.close()
			c.mu.Lock()
		default:
			c.mu.Unlock()
			return w, nil
		}
	}
	c.mu.Unlock()
	return c.start(ctx)
}

// Close ends the workers.
func (c *Client) Close() error {
	c.mu.Lock()
	idle := c.idle
	c.idle = nil
	c.mu.Unlock()
	for _, w := range idle {
		w.close()
	}
	c.guard.Close()
	return nil
}
