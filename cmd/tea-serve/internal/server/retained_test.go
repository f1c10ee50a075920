package server

import (
	"fmt"
	"log/slog"
	"testing"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"

	teacmd "github.com/the-edge-agent/tea/cmd"
	"github.com/the-edge-agent/tea/host"
)

// message is a message of a broker.
type message struct {
	id                uint16
	topic, text       string
	retain, duplicate bool
}

func TestMessageThatTheBrokerSendsAgainIsNotHandledAgain(t *testing.T) {
	t.Parallel()
	l := openTest(t, t.TempDir())
	t.Cleanup(l.close)
	s := &server{mu: &l.mu, led: l, svc: &teacmd.Service{Log: slog.New(slog.DiscardHandler)}}
	c, tr := &subscriptions{s: s}, &trigger{TriggerConfig: &host.TriggerConfig{MQTT: &host.MQTTConfig{}}, id: "t"}
	handle := func(m message) bool {
		t.Helper()
		p := paho.PublishFromPacketPublish(&packets.Publish{PacketID: m.id, QoS: 1, Topic: m.topic, Payload: []byte(m.text), Retain: m.retain, Duplicate: m.duplicate, Properties: &packets.Properties{}})
		changes, skip := c.handled(tr, p)
		l.mu.Lock()
		defer l.mu.Unlock()
		if _, err := l.add(false, changes...); err != nil {
			t.Fatal(err)
		}
		return !skip
	}
	for _, step := range []struct {
		message
		want bool
	}{
		{message{1, "a", "on", false, false}, true},
		{message{1, "a", "on", false, true}, false},
		{message{2, "a", "on", false, false}, true},
		{message{3, "a", "on", false, true}, true}, // it was not handled before
		{message{1, "a", "on", false, false}, true},
		{message{1, "a", "off", false, true}, true},
		{message{4, "a", "off", true, false}, false}, // was the last of its topic
		{message{5, "a", "on", true, false}, true},
		{message{6, "a", "on", true, false}, false},
		{message{7, "b", "on", true, false}, true},
	} {
		if got := handle(step.message); got != step.want {
			t.Errorf("%+v is handled: %v, want %v", step.message, got, step.want)
		}
	}
	for i := range maxTopics + 1000 {
		handle(message{uint16(i), fmt.Sprint("topic/", i), "x", false, false})
	}
	if n := len(l.state.files["t"]); n > maxTopics+2*maxInFlight {
		t.Errorf("%d messages are remembered", n)
	}
	s.lost = true
	if handle(message{8, "new", "on", true, false}) || !handle(message{9, "new", "on", false, false}) {
		t.Error("a retained message is handled without knowing that it was not before")
	}
}
