package serve

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"

	"github.com/the-edge-agent/tea/sdk/internal/pb"
)

// sent collects the messages of a stream.
type sent struct {
	grpc.ServerStreamingServer[pb.InvokeEvent]
	messages [][]string // the tokens of each message; the others are nil
}

func (s *sent) Send(e *pb.InvokeEvent) error {
	var texts []string
	if t := e.GetToken(); t != nil {
		texts = append([]string{t.GetText()}, t.GetMore()...)
	}
	s.messages = append(s.messages, texts)
	return nil
}

func TestTokensOfAMomentShareAMessage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		batches bool
		want    [][]string
	}{
		"a host that accepts several": {true, [][]string{{"a"}, {"b", "c"}, {"d"}, {"e"}, nil, {"f", "g"}}},
		"another host":                {false, [][]string{{"a"}, {"b"}, {"c"}, {"d"}, {"e"}, nil, {"f"}, {"g"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				stream := &sent{}
				h := &callHost{batches: c.batches, stream: stream}
				token := func(texts ...string) {
					for _, text := range texts {
						h.Token(t.Context(), text)
					}
				}
				token("a", "b", "c")
				<-time.After(time.Second) // alone since then
				token("d", "e")
				h.Progress(t.Context(), 0.5, "")
				token("f", "g")
				h.end(t.Context())
				token("late")
				if diff := cmp.Diff(c.want, stream.messages); diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			})
		})
	}
}
