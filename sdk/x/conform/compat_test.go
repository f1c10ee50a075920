package conform

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/internal/pb"
	"github.com/the-edge-agent/tea/sdk/x/wire"
)

// recordings has a conversation between host and plugin of each release, and
// what the host made of it. They are kept permanently.
const recordings = "../../../test/compat/wire"

var update = flag.Bool("update", false, "record next.jsonl and next.txt, the conversation of this version")

// exchange is one call of a conversation.
type exchange struct {
	Method  string            `json:"method"`
	Request []byte            `json:"request"`
	Answers [][]byte          `json:"answers"`
	Status  codes.Code        `json:"status"`
	Text    []json.RawMessage `json:"text,omitempty"` // for readers
	// Callbacks are the calls of the plugin's during this one.
	Callbacks []exchange `json:"callbacks,omitempty"`
}

// converse makes the calls of a conversation with the probe plugin and returns
// what the host sees, a line for each.
func converse(ctx context.Context, c *wire.Client) []string {
	var seen []string
	note := func(what string, v any, err error) {
		line := what + ": "
		var failure *tea.Error
		switch {
		case errors.As(err, &failure):
			text, _ := json.Marshal(map[string]any{"type": failure.Type, "retryable": failure.Retryable, "retry_after": failure.RetryAfter, "source": failure.Source, "details": Details(failure)})
			line += string(text)
		case err != nil:
			line += "broken: " + status.Code(errors.Unwrap(err)).String()
		default:
			text, _ := json.Marshal(v)
			line += string(text)
		}
		seen = append(seen, line)
	}
	m, err := c.Describe(ctx)
	note("describe", []any{m.Name, m.Version, m.Protocol, m.Find("probe.stream").Streaming, m.Find("probe.echo").Idempotent, m.Find("probe.greet").Params.Required}, err)
	note("health", nil, c.Health(ctx))
	note("configure", nil, c.Configure(ctx, "1", tea.Settings{"probe": json.RawMessage(`{"n": 9007199254740993, "none": null}`)}))
	note("refused", nil, c.Configure(ctx, "2", tea.Settings{"probe": json.RawMessage(`"refuse"`)}))
	invoke := func(instance, action, params string, stream bool) {
		host := &Host{
			Actions: map[string]func(context.Context, any) (any, error){
				"text.upper": func(_ context.Context, params any) (any, error) {
					return map[string]any{"given": params, "whole": 2.0}, nil
				},
			},
			Infos:  map[string]tea.ActionInfo{"text.upper": {Name: "text.upper", Summary: "Makes it loud.", Idempotent: true}},
			Budget: 1000, Notes: map[string]any{"null": nil},
		}
		req := &tea.Request{
			Action: action, Params: tea.RawPayload([]byte(params)), Host: host,
			Call: tea.Call{RunID: "run", Node: "a/b[1]", Attempt: 2, IdempotencyKey: "key", Traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", Tracestate: "a=1"},
		}
		resp, err := c.Invoke(ctx, instance, req, stream)
		var result any
		if err == nil {
			result, err = resp.Result.Value()
		}
		note(action, []any{result, host.Recorded()}, err)
	}
	invoke("1", "probe.echo", `{"max":9223372036854775807,"whole":2.0,"null":null,"text":"ü 🎉"}`, false)
	invoke("1", "probe.greet", `{"name":"Ada"}`, false)
	invoke("1", "probe.greet", `{"name":7}`, false)
	invoke("1", "probe.nothing", `{}`, false)
	invoke("1", "probe.fail", `{"type":"rate_limited","message":"later","retryable":true,"retry_after_ms":1500,"source":"api","details":{"status":429}}`, false)
	invoke("1", "probe.call", `{}`, false)
	invoke("1", "probe.settings", `{}`, false)
	invoke("1", "probe.stream", `{"tokens":3}`, true)
	invoke("1", "probe.invoke", `{"action":"text.upper","params":{"text":"ü","n":9007199254740993}}`, false)
	invoke("1", "probe.invoke", `{"action":"text.never","params":{}}`, false)
	invoke("1", "probe.describe", `{"action":"text.upper"}`, false)
	invoke("1", "probe.note", `{"key":"a","note":{"n":1,"none":null}}`, false)
	invoke("1", "probe.note", `{"key":"null","note":"text"}`, false)
	invoke("1", "probe.usage", `{"tokens":1000,"usd":0.25}`, false)
	invoke("1", "probe.stream", `{"tokens":2}`, false)
	invoke("unknown", "probe.echo", `{}`, false)
	note("release", nil, c.Release(ctx, "1"))
	invoke("1", "probe.echo", `{}`, false)
	note("shutdown", nil, c.Shutdown(ctx, time.Second))
	return seen
}

// recorder is a connection that records the calls of a host.
type recorder struct {
	grpc.ClientConnInterface
	callbacks *tap
	exchanges []exchange
}

func (r *recorder) Invoke(ctx context.Context, method string, args, reply any, opts ...grpc.CallOption) error {
	err := r.ClientConnInterface.Invoke(ctx, method, args, reply, opts...)
	x := exchange{Method: method, Request: encode(args), Status: status.Code(err), Text: []json.RawMessage{text(args)}}
	if err == nil {
		x.Answers = [][]byte{encode(reply)}
		x.Text = append(x.Text, text(reply))
	}
	x.Callbacks = r.callbacks.take()
	r.exchanges = append(r.exchanges, x)
	return err
}

func (r *recorder) NewStream(ctx context.Context, desc *grpc.StreamDesc, method string, opts ...grpc.CallOption) (grpc.ClientStream, error) {
	s, err := r.ClientConnInterface.NewStream(ctx, desc, method, opts...)
	r.exchanges = append(r.exchanges, exchange{Method: method})
	return &recordedStream{s, &r.exchanges[len(r.exchanges)-1]}, err
}

type recordedStream struct {
	grpc.ClientStream
	x *exchange
}

func (s *recordedStream) SendMsg(m any) error {
	s.x.Request, s.x.Text = encode(m), append(s.x.Text, text(m))
	return s.ClientStream.SendMsg(m)
}

func (s *recordedStream) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil {
		s.x.Answers, s.x.Text = append(s.x.Answers, encode(m)), append(s.x.Text, text(m))
	}
	return err
}

func encode(m any) []byte {
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m.(proto.Message))
	if err != nil {
		panic(err)
	}
	return raw
}

func text(m any) json.RawMessage {
	raw, err := protojson.Marshal(m.(proto.Message))
	if err != nil {
		panic(err)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		panic(err)
	}
	return compact.Bytes()
}

// player is a connection to a plugin of an earlier release: it returns the
// recorded answers.
type player struct {
	host *grpc.ClientConn // for callbacks

	mu   sync.Mutex
	left []exchange
}

func (p *player) next(method string) (exchange, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for len(p.left) > 0 {
		x := p.left[0]
		p.left = p.left[1:]
		if x.Method == method {
			return x, nil
		}
	}
	return exchange{}, fmt.Errorf("the recording has no further %s", method)
}

func (p *player) Invoke(ctx context.Context, method string, request, reply any, _ ...grpc.CallOption) error {
	x, err := p.next(method)
	if err != nil {
		return err
	}
	if call, ok := request.(*pb.InvokeRequest); ok {
		if err := callBack(ctx, p.host, x, call.GetCallId()); err != nil {
			return err
		}
	}
	if x.Status != codes.OK {
		return status.Error(x.Status, "as recorded")
	}
	return proto.Unmarshal(x.Answers[0], reply.(proto.Message))
}

func (p *player) NewStream(ctx context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption) (grpc.ClientStream, error) {
	x, err := p.next(method)
	return &playedStream{ctx, x.Answers}, err
}

type playedStream struct {
	ctx     context.Context
	answers [][]byte
}

func (s *playedStream) Header() (metadata.MD, error) { return metadata.MD{}, nil }
func (s *playedStream) Trailer() metadata.MD         { return nil }
func (s *playedStream) CloseSend() error             { return nil }
func (s *playedStream) Context() context.Context     { return s.ctx }
func (s *playedStream) SendMsg(any) error            { return nil }

func (s *playedStream) RecvMsg(m any) error {
	if len(s.answers) == 0 {
		return io.EOF
	}
	raw := s.answers[0]
	s.answers = s.answers[1:]
	return proto.Unmarshal(raw, m.(proto.Message))
}

func readRecording(t *testing.T, file string) []exchange {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var all []exchange
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var x exchange
		if err := json.Unmarshal(lines.Bytes(), &x); err != nil {
			t.Fatal(err)
		}
		all = append(all, x)
	}
	return all
}

// TestRecord writes the conversation of this version.
func TestRecord(t *testing.T) {
	t.Parallel()
	if !*update {
		t.Skip("records with -update")
	}
	p := fake(t, "none")
	callbacks := &tap{Broker: p.broker(t), t: t}
	r := &recorder{ClientConnInterface: p.Conn(), callbacks: callbacks}
	client := wire.Connect(r, callbacks)
	defer client.Close()
	seen := converse(t.Context(), client)
	var lines bytes.Buffer
	for _, x := range r.exchanges {
		if err := json.NewEncoder(&lines).Encode(x); err != nil {
			t.Fatal(err)
		}
	}
	for file, data := range map[string]string{"next.jsonl": lines.String(), "next.txt": strings.Join(seen, "\n") + "\n"} {
		if err := os.WriteFile(filepath.Join(recordings, file), []byte(data), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// A host of this version understands the plugins of every release.
func TestHostUnderstandsOlderPlugins(t *testing.T) {
	t.Parallel()
	for _, file := range recorded(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			board := newSwitchboard(t)
			client := wire.Connect(&player{host: board.dial(t), left: readRecording(t, file)}, board)
			defer client.Close()
			want, err := os.ReadFile(strings.TrimSuffix(file, ".jsonl") + ".txt")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.Split(strings.TrimSpace(string(want)), "\n"), converse(t.Context(), client)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A plugin of this version answers the hosts of every release as the plugin of
// that release did. It can add fields to its answers.
func TestPluginAnswersOlderHosts(t *testing.T) {
	t.Parallel()
	for _, file := range recorded(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			process := fake(t, "none")
			conn, host, served := process.Conn(), &olderHost{t: t}, false
			for _, x := range readRecording(t, file) {
				if !served && path.Base(x.Method) == "Configure" {
					host.serve(process.broker(t), x)
					served = true
				}
				host.expect(x.Callbacks)
				answers, code := ask(t, conn, x)
				if code != x.Status || len(answers) != len(x.Answers) {
					t.Errorf("%s: status %s with %d answers, want %s with %d", x.Method, code, len(answers), x.Status, len(x.Answers))
					continue
				}
				for i, got := range answers {
					if missing := lacksOf(t, x.Answers[i], got); missing != "" {
						t.Errorf("%s: %s", x.Method, missing)
					}
				}
				if unmade := host.expect(nil); len(unmade) > 0 {
					t.Errorf("%s: the plugin did not call %s", x.Method, unmade[0].Method)
				}
			}
		})
	}
}

// lacksOf returns what an answer lacks of the recorded one.
func lacksOf(t *testing.T, recorded []byte, got proto.Message) string {
	t.Helper()
	missing, err := missingOf(recorded, got)
	if err != nil {
		t.Fatal(err)
	}
	return missing
}

// missingOf is lacksOf outside of the test's goroutine.
func missingOf(recorded []byte, got proto.Message) (string, error) {
	want := got.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(recorded, want); err != nil {
		return "", err
	}
	var wantText, gotText any
	if err := errors.Join(json.Unmarshal(text(want), &wantText), json.Unmarshal(text(got), &gotText)); err != nil {
		return "", err
	}
	return lacks("message", wantText, gotText), nil
}

// recorded returns the files with recordings.
func recorded(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(recordings + "/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatalf("recordings: %v, %v", files, err)
	}
	return files
}

// messages returns empty messages for the request and the answer of a method.
func messages(method string) (request, answer proto.Message) {
	switch path.Base(method) {
	case "Describe":
		return &pb.DescribeRequest{}, &pb.DescribeResponse{}
	case "Configure":
		return &pb.ConfigureRequest{}, &pb.ConfigureResponse{}
	case "Release":
		return &pb.ReleaseRequest{}, &pb.ReleaseResponse{}
	case "Invoke":
		return &pb.InvokeRequest{}, &pb.InvokeResponse{}
	case "InvokeStream":
		return &pb.InvokeRequest{}, &pb.InvokeEvent{}
	case "Shutdown":
		return &pb.ShutdownRequest{}, &pb.ShutdownResponse{}
	case "Health":
		return &pb.HealthRequest{}, &pb.HealthResponse{}
	case "InvokeAction":
		return &pb.InvokeActionRequest{}, &pb.InvokeResponse{}
	case "DescribeAction":
		return &pb.DescribeActionRequest{}, &pb.DescribeActionResponse{}
	case "Log":
		return &pb.LogRequest{}, &pb.LogResponse{}
	case "Progress":
		return &pb.ProgressRequest{}, &pb.ProgressResponse{}
	case "Token":
		return &pb.TokenRequest{}, &pb.TokenResponse{}
	case "GetNote":
		return &pb.GetNoteRequest{}, &pb.GetNoteResponse{}
	case "SetNote":
		return &pb.SetNoteRequest{}, &pb.SetNoteResponse{}
	case "ReportUsage":
		return &pb.ReportUsageRequest{}, &pb.ReportUsageResponse{}
	}
	panic("unknown method " + method)
}

// ask makes a recorded call.
func ask(t *testing.T, conn grpc.ClientConnInterface, x exchange) ([]proto.Message, codes.Code) {
	t.Helper()
	request, answer := messages(x.Method)
	if err := proto.Unmarshal(x.Request, request); err != nil {
		t.Fatal(err)
	}
	if path.Base(x.Method) != "InvokeStream" {
		if err := conn.Invoke(t.Context(), x.Method, request, answer); err != nil {
			return nil, status.Code(err)
		}
		return []proto.Message{answer}, codes.OK
	}
	stream, err := conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, x.Method)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(stream.SendMsg(request), stream.CloseSend()); err != nil {
		t.Fatal(err)
	}
	var all []proto.Message
	for {
		_, event := messages(x.Method)
		if err := stream.RecvMsg(event); errors.Is(err, io.EOF) {
			return all, codes.OK
		} else if err != nil {
			return all, status.Code(err)
		}
		all = append(all, event)
	}
}

// lacks returns what a newer answer does not have; "" if it has everything. Lists
// can be longer. The wording of messages and details and the text of schemas can
// change.
func lacks(path string, want, got any) string {
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		for key, member := range w {
			if key == "message" || key == "detailsJson" || strings.Contains(key, "chema") {
				continue
			}
			if missing := lacks(path+"."+key, member, g[key]); missing != "" {
				return missing
			}
		}
		return ""
	case []any:
		g, _ := got.([]any)
		for i, item := range w {
			if i >= len(g) {
				return fmt.Sprintf("%s[%d] is missing", path, i)
			}
			if missing := lacks(fmt.Sprintf("%s[%d]", path, i), item, g[i]); missing != "" {
				return missing
			}
		}
		return ""
	}
	if diff := cmp.Diff(want, got); diff != "" {
		return path + " differs: " + diff
	}
	return ""
}
