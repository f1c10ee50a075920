package opcua

import (
	"context"
	"fmt"
	"strings"
	"time"

	lib "github.com/gopcua/opcua"
	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Part returns the part of the bundle.
func Part() part.Part {
	return part.New(settingsKey, func(s Settings, guards *guard.Guards) any {
		return &client{part.Connect(serversPath, s.Servers, newServer), s, guards}
	},
		part.Action(settingsKey, "read", "Reads the value of a node of an OPC UA server.", (*client).Read, tea.Idempotent(), tea.Reads()),
		part.Action(settingsKey, "write", "Writes the value of a node of an OPC UA server.", (*client).Write, tea.Once(), tea.DryRun()),
		part.Action(settingsKey, "browse", "Lists the nodes below a node of an OPC UA server.", (*client).Browse, tea.Idempotent(), tea.Reads()),
		part.Action(settingsKey, "call", "Calls a method of an OPC UA server.", (*client).Call, tea.Once(), tea.DryRun()),
		part.Action(settingsKey, "watch", "Passes on the changes of a value of an OPC UA server until the call ends; for the trigger stream of tea serve.", (*client).Watch, tea.Streaming(), tea.Idempotent(), tea.Reads()),
	)
}

// client makes the requests of a workflow.
type client struct {
	part.Servers[*server]
	settings Settings
	guards   *guard.Guards
}

// Where says which node is meant.
type Where struct {
	Node   string `json:"node,omitempty" doc:"name of a node in settings.opcua.nodes, instead of server and id"`
	Server string `json:"server,omitempty" doc:"name of the server in settings.opcua.servers; can be left out if there is one"`
	ID     string `json:"id,omitempty" doc:"identifier, such as ns=2;s=Pump.Speed or nsu=urn:plant;i=7"`
}

// find returns the server and the identifier of a node.
func (c *client) find(w Where) (*server, string, error) {
	if (w.Node == "") == (w.ID == "") || w.Node != "" && w.Server != "" {
		return nil, "", tea.Errorf(tea.ValidationError, "name a node of the settings with node, or another one with id")
	}
	if w.Node != "" {
		node, err := part.Entry(nodesPath, "node", c.settings.Nodes, w.Node)
		if err != nil {
			return nil, "", err
		}
		w.Server, w.ID = node.Server, node.ID
	}
	s, err := c.Server(w.Server)
	return s, w.ID, err
}

// Reading is a value with its status: the result of opcua.read, and what opcua.watch
// passes on.
type Reading struct {
	Success    bool    `json:"success" doc:"always true"`
	Value      any     `json:"value" doc:"the value; a float that is not finite is null"`
	Type       string  `json:"type" doc:"its type, such as double"`
	Status     string  `json:"status" doc:"its status, such as Good; opcua.watch also passes on values that are bad"`
	SourceTime *string `json:"source_time" doc:"time of the value"`
	ServerTime *string `json:"server_time" doc:"time at which the server had it"`
}

func toReading(v *ua.DataValue) (*Reading, error) {
	r := &Reading{Success: true, Status: statusName(v.Status), SourceTime: toTime(v.SourceTimestamp), ServerTime: toTime(v.ServerTimestamp)}
	if v.Value == nil || isBad(v.Status) {
		return r, nil
	}
	r.Type = typeName(v.Value.Type())
	var err error
	r.Value, err = decode(v.Value.Value())
	return r, err
}

// latest is the last time of the protocol. Servers send it, or a later one, for "never".
var latest = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// toTime formats a time that the library decoded. The library computes nanoseconds in 64
// bits, which overflow outside the years 1677 to 2262. toTime recovers n, the units of 100 ns
// since 1601: UnixNano is ((n - epoch) * 100) mod 2^64, so a quarter of it is
// ((n - epoch) * 25) mod 2^62. Since 25 is odd, this determines n mod 2^62, which covers the
// years up to 16215.
func toTime(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	const (
		epoch    = 116444736000000000  // 1970
		inverse  = 1106804644422573097 // of 25 modulo 2^62
		second   = 10_000_000
		bits62   = 1<<62 - 1
		unixFrom = 11644473600 // seconds from 1601 to 1970
	)
	n := int64((uint64(t.UnixNano())>>2*inverse + epoch) & bits62)
	if t = time.Unix(n/second-unixFrom, n%second*100).UTC(); t.After(latest) {
		t = latest
	}
	text := t.Format(time.RFC3339Nano)
	return &text
}

func (c *client) Read(ctx context.Context, _ *tea.Request, p Where) (*Reading, error) {
	s, at, err := c.find(p)
	if err != nil {
		return nil, err
	}
	values, err := s.attributes(ctx, at, ua.AttributeIDValue)
	if err != nil {
		return nil, err
	}
	got := values[0]
	if isBad(got.Status) {
		return nil, s.fault(ctx, fmt.Errorf("the value of %s: %w", at, got.Status))
	}
	r, err := toReading(got)
	if err != nil {
		return nil, tea.Errorf(tea.QueryError, "%s at the OPC UA server %s: %w", at, s, err)
	}
	return r, nil
}

// attributes reads attributes of a node.
func (s *server) attributes(ctx context.Context, at string, attributes ...ua.AttributeID) (values []*ua.DataValue, err error) {
	return values, s.read(ctx, func(ctx context.Context, c *lib.Client) error {
		node, err := s.parse(c, at)
		if err == nil {
			values, err = readAttributes(ctx, c, node, attributes...)
		}
		return err
	})
}

// parse returns an identifier with the namespaces of the server.
func (s *server) parse(c *lib.Client, at string) (*ua.NodeID, error) {
	node, err := parseID(at, c.Namespaces())
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "the OPC UA server %s: %w", s, err)
	}
	return node, nil
}

type writeParams struct {
	Node  string `json:"node" doc:"name of a node in settings.opcua.nodes that has write"`
	Value any    `json:"value" doc:"the value, or a list of values; times as in RFC 3339, bytestrings in Base64"`
}

type writeResult struct {
	Success bool   `json:"success" doc:"always true"`
	Node    string `json:"node"`
	Value   any    `json:"value" doc:"the value"`
	DryRun  bool   `json:"dry_run" doc:"true if nothing was sent because of dry_run in the settings"`
}

func (c *client) Write(ctx context.Context, req *tea.Request, p writeParams) (*writeResult, error) {
	node, err := part.Entry(nodesPath, "node", c.settings.Nodes, p.Node)
	if err != nil {
		return nil, guard.NotSent(err)
	}
	s, err := c.Server(node.Server)
	if err != nil {
		return nil, guard.NotSent(err)
	}
	var variant *ua.Variant
	if node.Write != nil { // otherwise Permit refuses it
		if variant, err = s.fit(ctx, node, p.Value); err != nil {
			return nil, guard.NotSent(err)
		}
	}
	result := &writeResult{Success: true, Node: p.Node, Value: p.Value}
	result.DryRun, err = c.guards.Permit(ctx, req, guard.Write{
		Setting: diag.Key(nodesPath, p.Node) + ".write", Machine: s.config.URL, Target: fmt.Sprintf("the node %q", p.Node),
		Rule: node.Write, Value: p.Value,
		Current: func(ctx context.Context) (any, error) {
			got, err := c.Read(ctx, nil, Where{Node: p.Node})
			if err != nil {
				return nil, err
			}
			return got.Value, nil
		},
	}, func(ctx context.Context) error {
		return s.write(ctx, func(ctx context.Context, conn *lib.Client) (ua.StatusCode, error) {
			at, err := s.parse(conn, node.ID)
			if err != nil {
				return 0, err
			}
			return writeValue(ctx, conn, at, variant)
		})
	})
	return result, err
}

func writeValue(ctx context.Context, c *lib.Client, at *ua.NodeID, v *ua.Variant) (ua.StatusCode, error) {
	resp, err := c.Write(ctx, &ua.WriteRequest{NodesToWrite: []*ua.WriteValue{{
		NodeID: at, AttributeID: ua.AttributeIDValue, Value: &ua.DataValue{EncodingMask: ua.DataValueValue, Value: v},
	}}})
	if err == nil && len(resp.Results) != 1 {
		err = errAnswer
	}
	if err != nil {
		return 0, err
	}
	return resp.Results[0], nil
}

// fit returns a value as the type, rank and dimensions of a variable need it.
func (s *server) fit(ctx context.Context, node Node, v any) (*ua.Variant, error) {
	got, err := s.attributes(ctx, node.ID, ua.AttributeIDDataType, ua.AttributeIDValueRank, ua.AttributeIDArrayDimensions, ua.AttributeIDValue)
	if err != nil {
		return nil, err
	}
	dataType, isType := plain(got[0]).(*ua.NodeID)
	rank, isRank := plain(got[1]).(int32)
	if !isType || !isRank {
		return nil, s.fault(ctx, fmt.Errorf("%s is not a variable that can be written: %w", node.ID, got[0].Status))
	}
	t := typeNamed(node.Type)
	if t == ua.TypeIDNull {
		t = builtin(dataType)
	}
	if t == ua.TypeIDNull && got[3].Value != nil {
		t = got[3].Value.Type() // an enumeration, or what an abstract type has now
	}
	if t == ua.TypeIDNull {
		return nil, tea.Errorf(tea.ValidationError, "the OPC UA server %s does not report the type of %s: set type of the node", s, node.ID)
	}
	variant, err := encode(t, rank, v)
	dimensions, _ := plain(got[2]).([]uint32)
	if list, ok := v.([]any); err == nil && ok && len(dimensions) == 1 && dimensions[0] > 0 && len(list) > int(dimensions[0]) {
		err = fmt.Errorf("it has at most %d values, got %d", dimensions[0], len(list))
	}
	if err != nil {
		return nil, tea.Errorf(tea.ValidationError, "%s at the OPC UA server %s: %w", node.ID, s, err)
	}
	return variant, nil
}

// plain returns the value of an attribute, or nil.
func plain(v *ua.DataValue) any {
	if v.Value == nil || isBad(v.Status) {
		return nil
	}
	return v.Value.Value()
}

type callParams struct {
	Method string `json:"method" doc:"name of the method in settings.opcua.methods"`
	Inputs []any  `json:"inputs,omitempty" doc:"its arguments"`
}

type callResult struct {
	Success bool   `json:"success" doc:"always true"`
	Method  string `json:"method"`
	Outputs []any  `json:"outputs" doc:"what the method has returned"`
	DryRun  bool   `json:"dry_run" doc:"true if nothing was sent because of dry_run in the settings"`
}

func (c *client) Call(ctx context.Context, req *tea.Request, p callParams) (*callResult, error) {
	method, err := part.Entry(methodsPath, "method", c.settings.Methods, p.Method)
	if err != nil {
		return nil, guard.NotSent(err)
	}
	s, err := c.Server(method.Server)
	if err != nil {
		return nil, guard.NotSent(err)
	}
	arguments, err := method.arguments(p.Inputs)
	if err != nil {
		return nil, guard.Invalid(fmt.Sprintf("method %q", p.Method), err)
	}
	result := &callResult{Success: true, Method: p.Method, Outputs: []any{}}
	result.DryRun, err = c.guards.Permit(ctx, req, guard.Write{
		Setting: diag.Key(methodsPath, p.Method), Machine: s.config.URL, Target: fmt.Sprintf("the method %q", p.Method),
		Rule: &guard.Rule{Limits: method.Limits}, Shown: value.Brief(p.Inputs),
	}, func(ctx context.Context) error {
		return s.write(ctx, func(ctx context.Context, conn *lib.Client) (ua.StatusCode, error) {
			return s.call(ctx, conn, method, arguments, result)
		})
	})
	return result, err
}

func (s *server) call(ctx context.Context, c *lib.Client, m Method, arguments []*ua.Variant, result *callResult) (ua.StatusCode, error) {
	object, err := s.parse(c, m.Object)
	if err != nil {
		return 0, err
	}
	method, err := s.parse(c, m.Method)
	if err != nil {
		return 0, err
	}
	got, err := c.Call(ctx, &ua.CallMethodRequest{ObjectID: object, MethodID: method, InputArguments: arguments})
	if err != nil {
		return 0, err
	}
	for _, output := range got.OutputArguments {
		v, err := decode(output)
		if err != nil {
			v = nil // it was called; that its output is a structure does not change that
		}
		result.Outputs = append(result.Outputs, v)
	}
	return got.StatusCode, nil
}

// maxBrowse is the maximum number of nodes that opcua.browse returns.
const maxBrowse = 1000

// Found is a node below another one.
type Found struct {
	ID    string `json:"id" doc:"its identifier"`
	Name  string `json:"name" doc:"its name, with the number of the namespace if that is not 0"`
	Class string `json:"class" doc:"object, variable, method or another class"`
}

type browseResult struct {
	Success   bool    `json:"success" doc:"always true"`
	Nodes     []Found `json:"nodes" doc:"at most 1000 nodes"`
	Truncated bool    `json:"truncated" doc:"whether there are more"`
}

func (c *client) Browse(ctx context.Context, _ *tea.Request, p Where) (*browseResult, error) {
	if p.Node == "" && p.ID == "" {
		p.ID = fmt.Sprintf("i=%d", id.ObjectsFolder)
	}
	s, at, err := c.find(p)
	if err != nil {
		return nil, err
	}
	result := &browseResult{Success: true}
	err = s.read(ctx, func(ctx context.Context, conn *lib.Client) error {
		node, err := s.parse(conn, at)
		if err != nil {
			return err
		}
		result.Nodes, result.Truncated = []Found{}, false
		return browse(ctx, conn, node, result)
	})
	return result, err
}

func browse(ctx context.Context, c *lib.Client, node *ua.NodeID, result *browseResult) error {
	resp, err := c.Browse(ctx, &ua.BrowseRequest{NodesToBrowse: []*ua.BrowseDescription{{
		NodeID: node, BrowseDirection: ua.BrowseDirectionForward, ReferenceTypeID: ua.NewNumericNodeID(0, id.HierarchicalReferences),
		IncludeSubtypes: true, ResultMask: uint32(ua.BrowseResultMaskAll),
	}}})
	for {
		if err == nil && len(resp.Results) != 1 {
			err = errAnswer
		}
		if err != nil {
			return err
		}
		got := resp.Results[0]
		if isBad(got.StatusCode) {
			return got.StatusCode
		}
		for _, r := range got.References {
			result.Nodes = append(result.Nodes, Found{ID: r.NodeID.String(), Name: qualified(r.BrowseName), Class: strings.ToLower(strings.TrimPrefix(r.NodeClass.String(), "NodeClass"))})
		}
		result.Truncated = len(got.ContinuationPoint) > 0 && len(result.Nodes) >= maxBrowse || len(result.Nodes) > maxBrowse
		result.Nodes = result.Nodes[:min(len(result.Nodes), maxBrowse)]
		if len(got.ContinuationPoint) == 0 {
			return nil
		}
		next, err := c.BrowseNext(ctx, &ua.BrowseNextRequest{ReleaseContinuationPoints: result.Truncated, ContinuationPoints: [][]byte{got.ContinuationPoint}})
		if result.Truncated || err != nil {
			return err
		}
		resp = &ua.BrowseResponse{Results: next.Results}
	}
}
