package subproc

import (
	"fmt"
	"slices"
	"strings"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// refusal describes why actions of a plugin are not used.
type refusal struct{ path, owner, reason string }

// offered returns the plugins with the actions that they can offer, in the order in which
// they were found, and the actions that they cannot offer. A plugin owns the namespace of
// its name; in any other namespace the first plugin with an action offers it. The caller
// holds the lock.
func (s *Plugins) offered() (all []Bundle, refused []Problem) {
	offers := map[string]string{} // the path of the plugin, by action
	actions := map[refusal][]string{}
	var order []refusal
	for _, name := range s.order {
		p := s.plugins[name].found()
		p.Manifest.Actions = slices.DeleteFunc(slices.Clone(p.Manifest.Actions), func(a tea.ActionInfo) bool {
			namespace, _, _ := strings.Cut(a.Name, ".")
			r := refusal{p.Path, s.pathOf(namespace), "owns the namespace " + namespace}
			if r.owner == "" {
				r.owner, r.reason = offers[a.Name], "is found first and has the same"
			}
			if r.owner == "" || r.owner == p.Path {
				offers[a.Name] = p.Path
				return false
			}
			if actions[r] == nil {
				order = append(order, r)
			}
			actions[r] = append(actions[r], a.Name)
			return true
		})
		all = append(all, p)
	}
	for _, r := range order {
		refused = append(refused, Problem{Severity: diag.Warning, Path: r.path, Message: fmt.Sprintf("not used: %s; %s %s", listed(actions[r]), r.owner, r.reason)})
	}
	return all, refused
}

// maxListed is the maximum number of actions in the message of a problem.
const maxListed = 5

func listed(actions []string) string {
	if more := len(actions) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(actions[:maxListed], ", "), more)
	}
	return strings.Join(actions, ", ")
}

// pathOf returns the path of the plugin with that name, or "".
func (s *Plugins) pathOf(name string) string {
	if p := s.plugins[name]; p != nil {
		return p.version().binary.path
	}
	for _, u := range s.unread {
		if u.Name == name {
			return u.Path
		}
	}
	return ""
}

// warnRefused logs the refused actions that were not logged before.
func (s *Plugins) warnRefused() {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, refused := s.offered()
	for _, p := range refused {
		if !slices.Contains(s.refused, p) {
			s.refused = append(s.refused, p)
			s.launcher.options.Logger.Warn("plugin problem: "+p.Path, "error", p.Message)
		}
	}
}
