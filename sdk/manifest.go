package tea

import (
	"fmt"
	"maps"
	"slices"

	"github.com/the-edge-agent/tea/sdk/jsonschema"
	"github.com/the-edge-agent/tea/sdk/schema"
)

// maxFiles bounds the files of a manifest, which are checked at each start.
const maxFiles = 256

// Check reports mistakes in a manifest, which can be untrusted: invalid names,
// duplicates, another protocol.
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

// CheckSchemas finds the first schema of a manifest that is not valid. It
// compiles all of them: a host calls it once for each plugin that is new to it.
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

// Find returns the description of the action with that name, or nil.
func (m Manifest) Find(name string) *ActionInfo {
	for i := range m.Actions {
		if m.Actions[i].Name == name {
			return &m.Actions[i]
		}
	}
	return nil
}
