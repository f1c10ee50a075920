package server

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/sdk/x/confine"
)

// tokensInterval is the interval at which the token file is read.
const tokensInterval = time.Second

// tokens holds the tokens of --token-file. It is safe for concurrent use; a nil value
// holds none.
type tokens struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	grants []grant
	// problem is the last logged problem of the file.
	problem string
	// held holds the requests that are being served, with the digests of their tokens.
	held map[*http.Request]held
}

// grant is a token with its role.
type grant struct {
	digest [sha256.Size]byte
	role   role
	name   string
}

// validName matches names of tokens.
var validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)

// owner identifies the holder: the name, which stays the same when the token is replaced,
// or the digest of a token without a name.
func (g grant) owner() string {
	if g.name == "" {
		return "#" + hex.EncodeToString(g.digest[:8])
	}
	return g.name
}

// held is a request that ends when its token is revoked.
type held struct {
	grant  grant
	cancel context.CancelFunc
}

func openTokens(path string, log *slog.Logger) (*tokens, error) {
	t := &tokens{path: path, log: log, held: map[*http.Request]held{}}
	var err error
	t.grants, err = readTokens(path)
	return t, err
}

// readTokens reads the file of --token-file.
func readTokens(path string) (grants []grant, err error) {
	const most = 64 << 10
	text, err := confine.ReadRegular(path, most)
	if err != nil {
		return nil, teacmd.UsageErrorf("--token-file: %w; write one line for each token: ROLE TOKEN, or ROLE TOKEN NAME", err)
	}
	if err := private(path); err != nil {
		return nil, teacmd.UsageErrorf("--token-file: %w", err)
	}
	n := 0
	for line := range strings.Lines(string(text)) {
		n++
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		r := role(slices.Index(roleNames, words[0]))
		if len(words) < 2 || len(words) > 3 || r < roleView || len(words[1]) < minToken {
			return nil, teacmd.UsageErrorf("--token-file: %s:%d: expected view, answer, run or admin, then a token of at least %d characters, then optionally a name; `openssl rand -hex 32` makes a token", path, n, minToken)
		}
		g := grant{digest: sha256.Sum256([]byte(words[1])), role: r}
		if len(words) == 3 {
			if g.name = words[2]; !validName.MatchString(g.name) {
				return nil, teacmd.UsageErrorf("--token-file: %s:%d: a name has up to 64 letters, digits, _ and -", path, n)
			}
		}
		if slices.ContainsFunc(grants, func(other grant) bool { return other.digest == g.digest }) {
			return nil, teacmd.UsageErrorf("--token-file: %s:%d: the token appears twice; remove one of the lines", path, n)
		}
		grants = append(grants, g)
	}
	if len(grants) == 0 {
		return nil, teacmd.UsageErrorf("--token-file: %s has no token", path)
	}
	return grants, nil
}

// watch reads the file repeatedly until the context is done, and ends the requests
// whose tokens were removed. An invalid file leaves the tokens unchanged; without the
// file, no token is valid.
func (t *tokens) watch(ctx context.Context) {
	if t == nil {
		return
	}
	ticker := time.NewTicker(tokensInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			t.update()
		case <-ctx.Done():
			return
		}
	}
}

func (t *tokens) update() {
	grants, err := readTokens(t.path)
	gone := errors.Is(err, fs.ErrNotExist)
	problem, effect := "", "the tokens remain as they were before"
	if err != nil {
		problem = err.Error()
	}
	if gone {
		effect = "no token is valid"
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if problem != t.problem && problem != "" {
		t.log.Error(problem + "; " + effect)
	}
	t.problem = problem
	if err != nil && !gone || slices.Equal(grants, t.grants) {
		return
	}
	t.grants = grants
	t.log.Info(fmt.Sprintf("--token-file: %d tokens are valid now", len(grants)))
	for _, h := range t.held {
		if !slices.Contains(grants, h.grant) {
			h.cancel()
		}
	}
}

// of returns the grant of a request's token, and whether the request has a token. It
// compares every token in constant time. The caller holds the mutex.
func (t *tokens) of(r *http.Request) (found grant, given bool) {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	token = strings.TrimSpace(token)
	digest := sha256.Sum256([]byte(token))
	bearer := strings.EqualFold(scheme, "Bearer")
	for _, g := range t.grants {
		if subtle.ConstantTimeCompare(digest[:], g.digest[:]) == 1 && bearer {
			found = g
		}
	}
	return found, token != ""
}

// grantOf returns the grant of a request's token, and whether the request has a token.
func (t *tokens) grantOf(r *http.Request) (found grant, given bool) {
	if t == nil {
		return grant{}, strings.Contains(r.Header.Get("Authorization"), " ")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of(r)
}

// mayAnswer reports whether a token of an owner is valid and has the role answer.
func (t *tokens) mayAnswer(owner string) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.ContainsFunc(t.grants, func(g grant) bool { return g.role >= roleAnswer && g.owner() == owner })
}

// hold returns the request with a context that is canceled when its token is revoked.
// The caller must call release at the end of the request.
func (t *tokens) hold(r *http.Request) (_ *http.Request, release func()) {
	if t == nil {
		return r, func() {}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	g, _ := t.of(r)
	if g.role == roleNone { // authenticated by a certificate
		return r, func() {}
	}
	ctx, cancel := context.WithCancel(r.Context())
	r = r.WithContext(ctx)
	t.held[r] = held{g, cancel}
	return r, func() {
		cancel()
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.held, r)
	}
}
