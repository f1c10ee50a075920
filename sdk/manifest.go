package tea

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
)

const (
	// maxFiles bounds the files of a manifest, which are checked at each start.
	maxFiles = 256
	// maxNames bounds the variables and the exclusive settings of a manifest.
	maxNames = 256
	// maxStartTimeout is the longest start time that a manifest can declare.
	maxStartTimeout = 10 * time.Minute
)

// Check reports mistakes in a manifest, which can be untrusted: invalid names,
// duplicates, a different protocol.
func (m Manifest) Check() error {
	switch {
	case !bundleName().MatchString(m.Name):
		return fmt.Errorf("bundle name %q: expected lower-case letters, digits and '-', beginning with a letter", m.Name)
	case m.Version == "":
		return fmt.Errorf("bundle %s has no version", m.Name)
	case !version().MatchString(m.Version):
		return fmt.Errorf("bundle %s: version %q: expected a semantic version without a v, such as 1.2.3", m.Name, m.Version)
	case m.Protocol != ProtocolVersion:
		return fmt.Errorf("bundle %s: protocol %d is not supported; expected %d", m.Name, m.Protocol, ProtocolVersion)
	case len(m.Actions) == 0:
		return fmt.Errorf("bundle %s has no actions", m.Name)
	}
	if len(m.Files) > maxFiles {
		return fmt.Errorf("bundle %s lists %d files, at most %d are allowed", m.Name, len(m.Files), maxFiles)
	}
	if err := m.checkNeeds(); err != nil {
		return fmt.Errorf("bundle %s: %w", m.Name, err)
	}
	seen := map[string]bool{}
	for _, a := range m.Actions {
		switch {
		case !actionName().MatchString(a.Name):
			return fmt.Errorf("bundle %s: action name %q: expected namespace.verb in lower case", m.Name, a.Name)
		case seen[a.Name]:
			return fmt.Errorf("bundle %s: action %s appears twice", m.Name, a.Name)
		}
		seen[a.Name] = true
	}
	return nil
}

// checkNeeds reports mistakes in the requirements of the bundle's process.
func (m Manifest) checkNeeds() error {
	switch {
	case len(m.Env) > maxNames:
		return fmt.Errorf("%d environment variables are listed, at most %d are allowed", len(m.Env), maxNames)
	case len(m.Exclusive) > maxNames:
		return fmt.Errorf("%d exclusive settings are listed, at most %d are allowed", len(m.Exclusive), maxNames)
	case m.StartTimeoutMS < 0 || m.StartTimeoutMS > maxStartTimeout.Milliseconds():
		return fmt.Errorf("start_timeout_ms is %d, expected 0 to %d", m.StartTimeoutMS, maxStartTimeout.Milliseconds())
	case m.MemoryBytes < 0:
		return fmt.Errorf("memory_bytes is %d, expected 0 or more", m.MemoryBytes)
	}
	for _, name := range m.Env {
		if !variable().MatchString(name) {
			return fmt.Errorf("%q is not a valid name of an environment variable", name)
		}
	}
	for _, path := range m.Exclusive {
		if !m.reads(path) {
			return fmt.Errorf("the exclusive setting %q is not in the settings that the bundle reads", path)
		}
	}
	switch d := m.Dynamic; {
	case d == nil:
		return nil
	case !m.reads(d.File):
		return fmt.Errorf("the setting %q with the file of the dynamic actions is not in the settings that the bundle reads", d.File)
	case m.Find(d.List) == nil:
		return fmt.Errorf("the action %q that lists the dynamic actions is not in the bundle", d.List)
	}
	return nil
}

// reads reports whether the bundle reads the setting at a path.
func (m Manifest) reads(path string) bool {
	key, _, _ := strings.Cut(path, ".")
	_, ok := m.Settings[key]
	return ok
}

// IsDynamic reports whether a name may belong to an action that depends on the
// settings.
func (m Manifest) IsDynamic(name string) bool {
	return m.Dynamic != nil && strings.HasPrefix(name, m.Name+".") && m.Find(name) == nil && actionName().MatchString(name)
}

// CheckSchemas returns an error for the first invalid schema of a manifest. It
// compiles all schemas: a host calls it once for each plugin that is new to it.
func (m Manifest) CheckSchemas() error {
	check := func(s *schema.Schema, format string, args ...any) error {
		if s == nil {
			return nil
		}
		if _, err := jsonschema.Compile(s); err != nil {
			return fmt.Errorf("bundle %s: %s: %w", m.Name, fmt.Sprintf(format, args...), err)
		}
		return nil
	}
	for _, a := range m.Actions {
		if err := check(a.Params, "parameters of %s", a.Name); err != nil {
			return err
		}
		if err := check(a.Result, "result of %s", a.Name); err != nil {
			return err
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Settings)) {
		if err := check(m.Settings[key], "settings.%s", key); err != nil {
			return err
		}
	}
	return nil
}

// Find returns the description of the action with a name, or nil.
func (m Manifest) Find(name string) *ActionInfo {
	for i := range m.Actions {
		if m.Actions[i].Name == name {
			return &m.Actions[i]
		}
	}
	return nil
}
