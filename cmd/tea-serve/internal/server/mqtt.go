package server

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/eclipse/paho.golang/autopaho"
	"github.com/eclipse/paho.golang/paho"

	"github.com/the-edge-agent/tea/host"
	"github.com/the-edge-agent/tea/host/flow"
	"github.com/the-edge-agent/tea/sdk/value"
)

const (
	// keepAlive is the interval of pings, in seconds.
	keepAlive = 30
	// sessionExpiry is how long the broker keeps messages for a stopped server, in
	// seconds.
	sessionExpiry = 24 * 60 * 60
	// refusedWait is the wait before a message is retried while the queue is full.
	refusedWait = time.Second
	// publishTimeout bounds how long the result of a run waits for the queue of the
	// client.
	publishTimeout = 10 * time.Second
)

// checkMQTT checks a trigger of the kind mqtt.
func (s *server) checkMQTT(t *trigger) (hint string, err error) {
	if t.broker, err = url.Parse(t.MQTT.Broker); err != nil {
		return "", err
	}
	topic := t.MQTT.Topic
	if t.MQTT.ResultTopic != "" && matchesTopic(topic, t.MQTT.ResultTopic) {
		return "publish the results to a topic that the trigger does not have", fmt.Errorf("result_topic: %q is one of %q, so the workflow may trigger itself endlessly", t.MQTT.ResultTopic, topic)
	}
	if t.MQTT.Password != "" {
		var ok bool
		if t.secret, ok = s.svc.Secret(t.MQTT.Password); !ok {
			return "pass it with --secrets or --secrets-env", fmt.Errorf("password_secret: the secret %q is missing", t.MQTT.Password)
		}
	}
	return "", nil
}

// matchesTopic reports whether a subscription receives a topic.
func matchesTopic(filter, topic string) bool {
	if rest, shared := strings.CutPrefix(filter, "$share/"); shared {
		_, filter, _ = strings.Cut(rest, "/")
	}
	want, have := strings.Split(filter, "/"), strings.Split(topic, "/")
	for i, level := range want {
		switch {
		case level == "#":
			return true
		case i >= len(have) || level != "+" && level != have[i]:
			return false
		}
	}
	return len(want) == len(have)
}

// subscriptions are the connections to brokers, one per trigger.
type subscriptions struct {
	s *server

	mu   sync.Mutex
	open map[string]*subscription
}

// subscription is the connection of a trigger.
type subscription struct {
	trigger atomic.Pointer[trigger]
	manager *autopaho.ConnectionManager
	stop    context.CancelFunc
	// receiving is held while a message is handled: after a connection is lost, the
	// broker resends messages that are still being handled.
	receiving sync.Mutex
	// problem is the reason why the broker cannot be reached; nil if it can.
	problem atomic.Pointer[string]
}

// problem returns the reason why the broker of a trigger cannot be reached, or "".
func (c *subscriptions) problem(t *trigger) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if sub := c.open[t.connection()]; sub != nil {
		if text := sub.problem.Load(); text != nil {
			return *text
		}
	}
	return ""
}

// connection identifies the settings of a connection.
func (t *trigger) connection() string {
	return strings.Join([]string{t.id, t.broker.String(), t.MQTT.Topic, t.MQTT.Username, t.secret, fmt.Sprint(t.MQTT.QoS), t.MQTT.Retained}, "\x00")
}

// update opens and closes connections after a change of the triggers.
func (c *subscriptions) update() {
	c.mu.Lock()
	defer c.mu.Unlock()
	current := map[string]bool{}
	for _, t := range c.s.catalog.triggers(host.TriggerMQTT) {
		name := t.connection()
		current[name] = true
		if sub := c.open[name]; sub != nil {
			sub.trigger.Store(t)
			continue
		}
		sub, err := c.connect(t)
		if err != nil {
			c.s.svc.Log.Error(fmt.Sprintf("the trigger %q of %s: %v", t.Name, t.workflow, err))
			continue
		}
		c.open[name] = sub
	}
	for name, sub := range c.open {
		if !current[name] {
			sub.stop()
			delete(c.open, name)
		}
	}
}

// connect starts connecting to the broker, and reconnects whenever the connection
// breaks.
func (c *subscriptions) connect(t *trigger) (*subscription, error) {
	ctx, stop := context.WithCancel(c.s.ctx)
	sub := &subscription{stop: stop}
	sub.trigger.Store(t)
	label := fmt.Sprintf("the trigger %q of %s: broker %s", t.Name, t.workflow, t.broker.Redacted())
	id := sha256.Sum256([]byte(c.s.svc.Runs + "\x00" + t.id))
	manager, err := autopaho.NewConnection(ctx, autopaho.ClientConfig{
		ServerUrls: []*url.URL{t.broker}, KeepAlive: keepAlive, SessionExpiryInterval: sessionExpiry,
		ConnectUsername: t.MQTT.Username, ConnectPassword: []byte(t.secret), Queue: new(results),
		ReconnectBackoff: autopaho.NewExponentialBackoff(time.Second, time.Minute, time.Second, 2),
		ConnectPacketBuilder: func(p *paho.Connect, _ *url.URL) (*paho.Connect, error) {
			p.Properties.ReceiveMaximum = paho.Uint16(maxInFlight)
			return p, nil
		},
		OnConnectionUp: func(m *autopaho.ConnectionManager, _ *paho.Connack) {
			sub.problem.Store(nil)
			_, err := m.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: t.MQTT.Topic, QoS: byte(t.MQTT.QoS), RetainHandling: t.retainHandling()}}})
			if err != nil {
				text := "cannot subscribe: " + c.s.svc.Hide(err.Error())
				sub.problem.Store(&text)
				c.s.svc.Log.Error(label + ": " + text)
				return
			}
			c.s.svc.Log.Info(label+": subscribed", "topic", t.MQTT.Topic)
		},
		OnConnectError: func(err error) {
			text := c.s.svc.Hide(err.Error())
			if before := sub.problem.Swap(&text); before == nil || *before != text {
				c.s.svc.Log.Warn(label + ": " + text)
			}
		},
		ClientConfig: paho.ClientConfig{
			ClientID: "tea-" + hex.EncodeToString(id[:8]), EnableManualAcknowledgment: true, SendAcksInterval: 100 * time.Millisecond,
			OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
				if c.receive(ctx, sub, p.Packet) {
					return true, p.Client.Ack(p.Packet)
				}
				return true, nil // the broker sends it again
			}},
		},
	})
	if err != nil {
		stop()
		return nil, err
	}
	sub.manager = manager
	return sub, nil
}

// receive starts a run for a message, and reports whether to acknowledge it. It
// waits while the queue is full.
func (c *subscriptions) receive(ctx context.Context, sub *subscription, p *paho.Publish) bool {
	sub.receiving.Lock()
	defer sub.receiving.Unlock()
	t := sub.trigger.Load()
	if len(p.Payload) > maxBody {
		c.s.refuse(t, fmt.Errorf("the message at %.100q has %d bytes, the limit is %d", p.Topic, len(p.Payload), maxBody))
		return true
	}
	handled, skip := c.handled(t, p)
	if skip {
		return true
	}
	event := t.event(map[string]any{"topic": p.Topic, "retained": p.Retain})
	setBody(event, p.Payload)
	err := c.s.fireWhenRoom(ctx, t, event, request{also: handled, depth: depthOf(p)})
	return !errors.Is(err, errStopping)
}

// depthProperty is the property of a result that counts the runs that led to it,
// so that a loop of messages ends.
const depthProperty = "tea-depth"

// depthOf returns the depth of the run that a message starts.
func depthOf(p *paho.Publish) int {
	if p.Properties == nil {
		return 0
	}
	n, err := strconv.Atoi(p.Properties.User.Get(depthProperty))
	if err != nil || n < 0 {
		return 0
	}
	return min(n, maxDepth) + 1
}

// publish sends the result of a run to the topic of its trigger.
func (c *subscriptions) publish(lv *live, res *flow.Result) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sub := range c.open {
		t := sub.trigger.Load()
		if t.workflow != lv.it.Workflow || t.Name != lv.it.Trigger || t.MQTT.ResultTopic == "" {
			continue
		}
		doc := map[string]any{"run_id": lv.it.ID, "workflow": lv.it.Workflow, "status": res.Status}
		if state, err := value.Encode(lv.v.mask.Value(res.State)); err == nil {
			doc["state"] = json.RawMessage(state)
		}
		if res.Err != nil {
			doc["error"] = lv.v.mask.Text(res.Err.Error())
		}
		text, err := json.Marshal(doc)
		if err == nil {
			ctx, cancel := context.WithTimeout(c.s.runs, publishTimeout)
			err = sub.manager.PublishViaQueue(ctx, &autopaho.QueuePublish{Publish: &paho.Publish{
				Topic: t.MQTT.ResultTopic, QoS: byte(t.MQTT.QoS), Payload: text,
				Properties: &paho.PublishProperties{User: paho.UserProperties{{Key: depthProperty, Value: strconv.Itoa(lv.it.Depth)}}},
			}})
			cancel()
		}
		if err != nil {
			c.s.svc.Log.Warn("the result of run "+lv.it.ID+" was not published", "run", lv.it.ID, "workflow", lv.it.Workflow, "error", err)
		}
	}
}

// close ends the connections.
func (c *subscriptions) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, sub := range c.open {
		sub.stop()
		<-sub.manager.Done()
	}
}
