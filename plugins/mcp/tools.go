package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/schema"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/jsonschema"
	"github.com/the-edge-agent/tea/sdk/x/plaintext"
)

const (
	// maxTools and maxListed bound a server's listing, and maxPages the requests for
	// it.
	maxTools  = 1000
	maxListed = 8 << 20
	maxPages  = 100
	// maxDescription is the maximum size in bytes of a description.
	maxDescription = 4096
	// maxVerb is the maximum size in bytes of the tool's part in an action's
	// name.
	maxVerb = 80
)

// tool is a tool of a server.
type tool struct {
	def    *mcp.Tool
	action string // such as mcp.files_read_file
	digest string // covers everything that a model sees
	info   tea.ActionInfo
	check  *tea.ParamCheck
	// problem is why the parameters are not checked; "" if they are.
	problem string
}

// listing is an immutable list of a server's tools at one time.
type listing struct {
	tools []*tool
	// omitted describes the omitted tools; "" if there are none.
	omitted string
}

// named returns the tool with the server's name for it, or nil.
func (l *listing) named(name string) *tool {
	i := slices.IndexFunc(l.tools, func(t *tool) bool { return t.def.Name == name })
	if i < 0 {
		return nil
	}
	return l.tools[i]
}

// action returns the tool of an action, or nil.
func (l *listing) action(name string) *tool {
	i := slices.IndexFunc(l.tools, func(t *tool) bool { return t.action == name })
	if i < 0 {
		return nil
	}
	return l.tools[i]
}

// names returns the names of the tools.
func (l *listing) names() []string {
	names := make([]string, len(l.tools))
	for i, t := range l.tools {
		names[i] = t.def.Name
	}
	return names
}

// list requests the tools of a server. The caller has the turn.
func (s *server) list(ctx context.Context, se *session) (*listing, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.config.timeout(), errCall)
	defer cancel()
	se.stale.Store(false) // before the request: a change during it counts
	l := &listing{}
	if r := se.InitializeResult(); r == nil || r.Capabilities == nil || r.Capabilities.Tools == nil {
		return l, nil
	}
	var defs []*mcp.Tool
	size, seen, cursor := 0, map[string]bool{}, ""
	for page := 1; ; page++ {
		res, err := se.ClientSession.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, err
		}
		for _, def := range res.Tools {
			if def == nil || def.Name == "" || seen[def.Name] {
				l.omitted = fmt.Sprintf("tools without a name or with a duplicate name are left out, such as %s", quoted(nameOf(def)))
				continue
			}
			text, err := json.Marshal(def)
			if err != nil {
				return nil, s.errorf(tea.InternalError, "definition of the tool %s: %w", quoted(def.Name), err)
			}
			if size += len(text); len(defs) == maxTools || size > maxListed {
				l.omitted = fmt.Sprintf("only its first %d tools are used; the limit is %d tools and %d MiB of definitions", len(defs), maxTools, maxListed>>20)
				break
			}
			seen[def.Name] = true
			defs = append(defs, def)
		}
		switch cursor = res.NextCursor; {
		case cursor == "" || strings.HasPrefix(l.omitted, "only"):
			s.describe(l, defs)
			return l, nil
		case page == maxPages:
			l.omitted = fmt.Sprintf("only its first %d tools are used; it has more than %d pages of them", len(defs), maxPages)
			s.describe(l, defs)
			return l, nil
		}
	}
}

func nameOf(def *mcp.Tool) string {
	if def == nil {
		return ""
	}
	return def.Name
}

// describe adds the tools as actions. If a tool is named like the action of another
// one, both are left out, so that the result does not depend on the order of the
// tools.
func (s *server) describe(l *listing, defs []*mcp.Tool) {
	actions := actionNames(s.name, defs)
	count := map[string]int{}
	for _, action := range actions {
		count[action]++
	}
	for i, def := range defs {
		if count[actions[i]] > 1 {
			l.omitted = fmt.Sprintf("tools with the same action are left out, such as %s", actions[i])
			continue
		}
		t := &tool{def: def, action: actions[i], digest: digest(def)}
		t.info = tea.ActionInfo{Name: t.action, Summary: summary(def), Result: schema.Of[ToolResult](), Streaming: true}
		if a := def.Annotations; a != nil {
			t.info.Idempotent, t.info.Reads = a.IdempotentHint || a.ReadOnlyHint, a.ReadOnlyHint
		}
		t.info.Params, t.problem = params(def.InputSchema)
		t.check = tea.NewParamCheck(t.info.Params)
		l.tools = append(l.tools, t)
	}
}

// summary returns the description of a tool as printable text of bounded size.
func summary(def *mcp.Tool) string {
	text := def.Description
	if text == "" {
		text = def.Title
	}
	return plaintext.Cut(printable(text), maxDescription)
}

// printable removes control characters, and invisible characters that can hide text
// from a person.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return r
		case unicode.IsControl(r):
			return ' '
		case unicode.Is(unicode.Cf, r) && r != '\u200d':
			return -1
		}
		return r
	}, strings.ToValidUTF8(text, "\ufffd"))
}

// params converts the schema of a tool's arguments. A schema that tea does not support
// allows anything; problem is the reason.
func params(given any) (s *schema.Schema, problem string) {
	anything := &schema.Schema{Type: schema.Types{"object"}}
	text, err := json.Marshal(given)
	if err != nil {
		return anything, err.Error()
	}
	if _, isObject := given.(map[string]any); !isObject {
		return anything, "its inputSchema is not an object"
	}
	v, err := value.Decode(text)
	if err == nil {
		_, err = jsonschema.Compile(v)
	}
	s = new(schema.Schema)
	if err == nil {
		err = json.Unmarshal(text, s)
	}
	if err == nil {
		_, err = jsonschema.Compile(s) // like the host
	}
	if err != nil {
		return anything, plaintext.Cut(printable(err.Error()), 300)
	}
	if len(s.Type) > 0 && !slices.Contains(s.Type, "object") {
		return anything, "its inputSchema does not allow an object"
	}
	return s, ""
}

// digest identifies the definition of a tool, without icons and metadata, which neither
// a model nor a check uses.
func digest(def *mcp.Tool) string {
	text, err := json.Marshal(struct {
		Name, Title, Description  string
		InputSchema, OutputSchema any
		Annotations               *mcp.ToolAnnotations
	}{def.Name, def.Title, def.Description, def.InputSchema, def.OutputSchema, def.Annotations})
	if err != nil {
		text = []byte(err.Error()) // it was decoded from JSON
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// actionNames returns the names of the actions for a server's tools. They do not depend
// on the order of the tools.
func actionNames(server string, defs []*mcp.Tool) []string {
	verbs := make([]string, len(defs))
	count := map[string]int{}
	for i, def := range defs {
		verbs[i] = verb(def.Name)
		count[verbs[i]]++
	}
	names := make([]string, len(defs))
	for i, def := range defs {
		v := verbs[i]
		if count[v] > 1 && v != def.Name || v == "" || len(v) > maxVerb {
			// Another tool has the same verb, or the verb is empty.
			sum := sha256.Sum256([]byte(def.Name))
			v = strings.Trim(v[:min(len(v), maxVerb)]+"_"+hex.EncodeToString(sum[:4]), "_")
		}
		names[i] = bundleName + "." + server + "_" + v
	}
	return names
}

// verb returns the name of a tool in lower-case letters, digits and single
// underscores; "" if nothing is left. Words in camel case are separated.
func verb(name string) string {
	var b strings.Builder
	lower := false // the last letter was lower case
	for _, r := range name {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			b.WriteRune(r)
			lower = true
			continue
		case r >= 'A' && r <= 'Z':
			if lower {
				b.WriteByte('_')
			}
			b.WriteRune(r - 'A' + 'a')
		case b.Len() > 0 && !strings.HasSuffix(b.String(), "_"):
			b.WriteByte('_')
		}
		lower = false
	}
	return strings.Trim(b.String(), "_")
}
