package bundles

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/the-edge-agent/tea/host/internal/digest"
)

// CurrentPolicy is a policy for a long-running host: it rereads its lock files
// when they change, for example after `tea plugin lock`. A lock that was
// removed still applies. It is safe for concurrent use.
type CurrentPolicy struct {
	rules Rules

	mu     sync.Mutex
	policy *Policy
	state  string
}

// WatchPolicy is [LoadPolicy] for a long-running host.
func WatchPolicy(r Rules) (*CurrentPolicy, error) {
	c := &CurrentPolicy{rules: r}
	c.state = c.stateOfLocks()
	var err error
	c.policy, err = LoadPolicy(r)
	return c, err
}

// Files returns the paths of the lock files, including those that do not exist.
func (c *CurrentPolicy) Files() []string {
	files := make([]string, len(c.rules.Dirs))
	for i, dir := range c.rules.Dirs {
		files[i] = filepath.Join(dir, LockName)
	}
	return files
}

// Verify reports why a plugin must not run under the current rules; nil if it may.
func (c *CurrentPolicy) Verify(name, path string) error {
	policy, err := c.present()
	if err != nil {
		return err
	}
	return policy.Verify(name, path)
}

func (c *CurrentPolicy) present() (*Policy, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	state := c.stateOfLocks()
	if state == c.state {
		return c.policy, nil
	}
	next, err := LoadPolicy(c.rules)
	if err != nil {
		return nil, fmt.Errorf("read the changed lock: %w", err)
	}
	if len(next.Locks) >= len(c.policy.Locks) {
		c.policy = next
	}
	c.state = state
	return c.policy, nil
}

func (c *CurrentPolicy) stateOfLocks() string {
	var all []string
	for _, file := range c.Files() {
		target, _ := os.Readlink(file) // a link without a target is not the same as no file
		all = append(all, target, digest.State(file))
	}
	return strings.Join(all, "\n")
}
