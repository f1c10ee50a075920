package postgres

import (
	"bufio"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"net"
	"testing"
	"time"

	"github.com/the-edge-agent/tea/sdk/x/backoff"

	"github.com/the-edge-agent/tea/plugins/memory/store"
	"github.com/the-edge-agent/tea/plugins/memory/storetest"
)

// losing is a proxy that loses one of n answers of the server, and with it the
// connection.
func losing(t *testing.T, n int) *proxy {
	t.Helper()
	p := listen(t)
	p.answers = func(to, from net.Conn) {
		forwardAnswers(to, from, func() bool { return rand.IntN(n) == 0 }) //nolint:gosec // a test's choices
	}
	p.group.Go(p.accept)
	return p
}

// forwardAnswers forwards what a server sends, an answer at a time, until one is
// lost. The answer to the first message of a connection is not.
func forwardAnswers(to, from net.Conn, lost func() bool) {
	defer to.Close()
	defer from.Close()
	in := bufio.NewReader(from)
	var answer []byte
	for first := true; ; {
		head := make([]byte, 5)
		if _, err := io.ReadFull(in, head); err != nil {
			_, _ = to.Write(answer) // an error without an end
			return
		}
		body := make([]byte, binary.BigEndian.Uint32(head[1:])-4)
		if _, err := io.ReadFull(in, body); err != nil {
			return
		}
		answer = append(append(answer, head...), body...)
		const readyForQuery = 'Z'
		if head[0] != readyForQuery {
			continue
		}
		if !first && lost() {
			return
		}
		if _, err := to.Write(answer); err != nil {
			return
		}
		first, answer = false, nil
	}
}

// TestSuitesOverANetworkThatLosesAnswers runs the suites with one of twelve answers
// lost: calls must return what they return without faults.
func TestSuitesOverANetworkThatLosesAnswers(t *testing.T) {
	t.Parallel()
	server.URL(t) // skips the test
	var opened storetest.Opened[*backend[*store.Stores]]
	lossy := func(t *testing.T, now func() time.Time) *store.Stores {
		t.Helper()
		return opened.Again(t, func() (*backend[*store.Stores], error) {
			config := configFor(losing(t, 12).url(), server.Schema(t), now)
			d, err := open(t.Context(), config, nil)
			if err != nil {
				return nil, err
			}
			d.retries = backoff.Policy{Base: time.Millisecond, Max: 10 * time.Millisecond, Multiplier: 2}
			stores := d.stores(config)
			return &backend[*store.Stores]{stores, stores}, nil
		}).store
	}
	t.Run("entries", func(t *testing.T) {
		t.Parallel()
		storetest.LongTermMemory(t, func(t *testing.T, now func() time.Time) store.LongTermMemory { return lossy(t, now).LongTerm })
	})
	t.Run("documents", func(t *testing.T) {
		t.Parallel()
		storetest.MetadataStore(t, func(t *testing.T) store.MetadataStore { return lossy(t, time.Now).Metadata })
	})
	t.Run("vectors", func(t *testing.T) {
		t.Parallel()
		storetest.VectorIndex(t, func(t *testing.T) store.VectorIndex { return lossy(t, time.Now).Vectors })
	})
	t.Run("blobs", func(t *testing.T) {
		t.Parallel()
		storetest.BlobStorage(t, func(t *testing.T) store.BlobStorage { return lossy(t, time.Now).Blobs })
	})
}
