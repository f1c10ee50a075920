package server

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// Each route is described with its role, and nothing else is.
func TestOpenAPIDescribesTheRoutes(t *testing.T) {
	t.Parallel()
	var doc struct {
		Paths map[string]map[string]struct {
			Security []map[string][]string
			ID       string `json:"operationId"`
		}
	}
	if err := json.Unmarshal(openAPI, &doc); err != nil {
		t.Fatal(err)
	}
	described, ids := map[string]string{}, map[string]bool{}
	for path, methods := range doc.Paths {
		for method, op := range methods {
			role := roleNames[roleNone]
			if len(op.Security) > 0 {
				role = strings.Join(op.Security[0]["token"], " ")
				if diff := cmp.Diff([]map[string][]string{{"token": {role}}, {"certificate": {role}}, {}}, op.Security); diff != "" {
					t.Errorf("%s %s (-want +got):\n%s", method, path, diff)
				}
			}
			described[strings.ToUpper(method)+" "+path] = role
			if op.ID == "" || ids[op.ID] {
				t.Errorf("%s %s: the operationId %q is missing or appears twice", method, path, op.ID)
			}
			ids[op.ID] = true
		}
	}
	s := &server{}
	s.metrics = newMetrics(s)
	_, routes := s.routes(&access{})
	served := map[string]string{}
	for _, r := range routes {
		served[strings.ReplaceAll(r.pattern, "...}", "}")] = roleNames[r.role]
	}
	if diff := cmp.Diff(served, described); diff != "" {
		t.Errorf("routes and their roles (-served +described):\n%s", diff)
	}
}
