package mqtt

import (
	"context"
	"encoding/base64"
	"unicode/utf8"

	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
)

// maxUnread is the number of messages that wait for the caller. Beyond that, the
// connection is read no further.
const maxUnread = 100

type watchParams struct {
	Server string `json:"server,omitempty" doc:"name of the broker in settings.mqtt.servers; can be left out if there is one"`
	Topic  Filter `json:"topic" doc:"topic, which can have the wildcards + and #"`
	QoS    int    `json:"qos,omitempty" enum:"0,1,2" default:"1" doc:"quality of service"`
}

// Watch implements mqtt.watch. It uses a separate connection, so that it can stop reading without delaying other calls.
func (c *client) Watch(ctx context.Context, req *tea.Request, p watchParams) (struct{}, error) {
	s, err := c.Server(p.Server)
	if err != nil {
		return struct{}{}, err
	}
	own := newServer(s.name, s.config)
	own.ordered = true
	own.config.ClientID, own.config.Will = "", nil // they belong to the connection of other calls
	defer own.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // ends receive
	messages := make(chan *message, maxUnread)
	conn, _, err := own.listen(ctx, string(p.Topic), byte(p.QoS), func(m *message) {
		select {
		case messages <- m:
		case <-ctx.Done():
		}
	})
	if err != nil {
		return struct{}{}, err
	}
	for {
		select {
		case m := <-messages:
			if err := part.Emit(ctx, req, m.watched()); err != nil {
				return struct{}{}, err
			}
		case <-ctx.Done():
			return struct{}{}, ctx.Err()
		case <-conn.done():
			return struct{}{}, tea.Errorf(tea.ConnectionError, "the connection to the MQTT broker %s was lost", s)
		}
	}
}

// watched returns a message as mqtt.watch passes it on: as an event of the trigger mqtt
// of tea serve has it.
func (m *message) watched() map[string]any {
	out := map[string]any{"topic": m.topic, "retained": m.retain, "body": string(m.payload)}
	if v, err := value.Decode(m.payload); err == nil {
		out["body"] = v
	} else if !utf8.Valid(m.payload) {
		out["body"], out["encoding"] = base64.StdEncoding.EncodeToString(m.payload), "base64"
	}
	return out
}
