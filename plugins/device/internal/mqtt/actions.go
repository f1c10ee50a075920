package mqtt

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/the-edge-agent/tea/plugins/device/internal/guard"
	"github.com/the-edge-agent/tea/plugins/device/internal/part"
	tea "github.com/the-edge-agent/tea/sdk"
	"github.com/the-edge-agent/tea/sdk/value"
	"github.com/the-edge-agent/tea/sdk/x/diag"
)

// Part returns the part of the bundle.
func Part() part.Part {
	return part.New(settingsKey, func(s Settings, guards *guard.Guards) any {
		return &client{part.Connect(serversPath, s.Servers, newServer), guards}
	},
		part.Action(settingsKey, "publish", "Publishes a message to an MQTT broker and waits for its acknowledgement.", (*client).Publish, tea.DryRun()),
		part.Action(settingsKey, "request", "Publishes a message to an MQTT broker and waits for the response.", (*client).Request, tea.DryRun()),
		part.Action(settingsKey, "last", "Returns the retained message of a topic of an MQTT broker.", (*client).Last, tea.Idempotent(), tea.Reads()),
		part.Action(settingsKey, "watch", "Passes on the messages of topics until the call ends; for the trigger stream of tea serve.", (*client).Watch, tea.Streaming(), tea.Idempotent(), tea.Reads()),
	)
}

// client uses the brokers of a workflow.
type client struct {
	part.Servers[*server]
	guards *guard.Guards
}

// Properties are the properties of a message in version 5 of the protocol.
type Properties struct {
	ContentType   string            `json:"content_type,omitempty" doc:"media type of the payload"`
	ExpirySeconds int64             `json:"expiry_seconds,omitempty" minimum:"1" maximum:"4294967295" doc:"time after which the broker discards the message"`
	User          map[string]string `json:"user,omitempty" doc:"further properties"`
}

// Outgoing are the parameters of a message.
type Outgoing struct {
	Server        string      `json:"server,omitempty" doc:"name of the broker in settings.mqtt.servers; can be left out if there is one"`
	Topic         string      `json:"topic" minLength:"1" maxLength:"16383" pattern:"^[^+#\\x00]*$" doc:"topic, without wildcards; a rule in settings.mqtt.servers.NAME.publish must allow it"`
	Payload       any         `json:"payload,omitempty" doc:"text as it is, anything else as JSON; without it, the message is empty"`
	PayloadBase64 string      `json:"payload_base64,omitempty" doc:"the payload in Base64, instead of payload"`
	QoS           int         `json:"qos,omitempty" enum:"0,1,2" default:"1" doc:"quality of service: 0 is not acknowledged, 1 arrives at least once, 2 exactly once"`
	Properties    *Properties `json:"properties,omitempty" doc:"properties of version 5"`
}

type publishParams struct {
	Outgoing
	Retain bool `json:"retain,omitempty" doc:"the broker keeps the message for later subscribers; an empty message removes the one that it keeps"`
}

type publishResult struct {
	Success bool   `json:"success" doc:"always true"`
	Topic   string `json:"topic"`
	Bytes   int    `json:"bytes" doc:"size of the payload"`
	Unheard bool   `json:"unheard" doc:"true if the broker has said that nobody subscribes to the topic (version 5, QoS 1)"`
	DryRun  bool   `json:"dry_run" doc:"true if nothing was sent because of dry_run in the settings"`
}

func (c *client) Publish(ctx context.Context, req *tea.Request, p publishParams) (*publishResult, error) {
	s, m, w, err := c.prepare(p.Outgoing)
	if err != nil {
		return nil, guard.NotSent(err)
	}
	m.retain = p.Retain
	result := &publishResult{Success: true, Topic: p.Topic, Bytes: len(m.payload)}
	result.DryRun, err = c.guards.Permit(ctx, req, w, func(ctx context.Context) error {
		conn, err := s.connection(ctx)
		if err != nil {
			return guard.NotSent(err)
		}
		d, err := s.publish(ctx, conn, m)
		result.Unheard = d.unheard
		return err
	})
	return result, err
}

// prepare returns the server, the message and the write for the guards.
func (c *client) prepare(p Outgoing) (*server, *message, guard.Write, error) {
	s, err := c.Server(p.Server)
	if err != nil {
		return nil, nil, guard.Write{}, err
	}
	m := &message{topic: p.Topic, qos: byte(p.QoS), properties: p.Properties}
	if p.Properties != nil && s.config.Protocol == "3.1.1" {
		return nil, nil, guard.Write{}, tea.Errorf(tea.ValidationError, "properties need version 5 of the protocol, and the broker %s has protocol: 3.1.1", s)
	}
	var number any
	if m.payload, number, err = p.payload(); err != nil {
		return nil, nil, guard.Write{}, err
	}
	rule, setting := s.config.rule(diag.Key(serversPath, s.name), p.Topic)
	return s, m, guard.Write{
		Setting: setting, Machine: s.config.URL, Target: fmt.Sprintf("the topic %q", p.Topic), Rule: rule, Value: number, Shown: cmp.Or(part.Shown("%s", m.payload), "an empty message"),
	}, nil
}

// payload returns the bytes of the payload, and the number that it is; nil if it is none.
func (p Outgoing) payload() (data []byte, number any, err error) {
	text, isText := p.Payload.(string)
	switch {
	case p.Payload != nil && p.PayloadBase64 != "":
		return nil, nil, tea.Errorf(tea.ValidationError, "payload and payload_base64 exclude each other")
	case p.Payload == nil || isText:
		data, err = part.Bytes("payload", text, p.PayloadBase64)
	default:
		data, err = value.Encode(p.Payload)
	}
	if err != nil {
		return nil, nil, err
	}
	// A text such as "7" is a number to the machine too.
	var read any
	if json.Valid(data) {
		read, err = value.Decode(data)
	}
	if n, ok := guard.Number(read); ok && err == nil {
		number = n
	}
	return data, number, nil
}

// publish sends a message and waits for its acknowledgement. The error has the outcome.
func (s *server) publish(ctx context.Context, c conn, m *message) (delivery, error) {
	limited, cancel := s.during(ctx, c)
	defer cancel()
	d, err := c.publish(limited, m)
	var refused *refusedError
	var unsent unsentError
	switch {
	case err == nil:
		return d, nil
	case errors.As(err, &refused):
		return d, guard.Refused(s.refusal(refused, fmt.Sprintf("refused the message to %q", m.topic)))
	case errors.As(err, &unsent) && errors.Is(err, errLost):
		return d, guard.NotSent(tea.Errorf(tea.ConnectionError, "the MQTT broker %s: %w", s, err))
	case errors.As(err, &unsent):
		return d, guard.NotSent(tea.Errorf(tea.ValidationError, "the MQTT broker %s: %w", s, err))
	case ctx.Err() != nil:
		return d, guard.Unknown(tea.Errorf(tea.AsError(ctx.Err()).Type, "the MQTT broker %s did not acknowledge the message to %q before the call ended", s, m.topic))
	case context.Cause(limited) == context.DeadlineExceeded:
		return d, guard.Unknown(tea.Errorf(tea.Timeout, "the MQTT broker %s did not acknowledge the message to %q within %s", s, m.topic, s.config.timeout()))
	}
	return d, guard.Unknown(tea.Errorf(tea.ConnectionError, "the connection to the MQTT broker %s was lost before it acknowledged the message to %q: %w", s, m.topic, err))
}

type requestParams struct {
	Outgoing
	ResponseTopic  string  `json:"response_topic,omitempty" maxLength:"16383" pattern:"^[^+#\\x00]*$" doc:"topic of the response; default: a separate one below tea/response. Version 3.1.1 needs it, and takes the first message there"`
	TimeoutSeconds float64 `json:"timeout_seconds,omitempty" default:"10" minimum:"0.01" maximum:"86400" doc:"limit for the response"`
}

// Message is a message that was received.
type Message struct {
	Value      any         `json:"value" doc:"the payload: what it is as JSON, otherwise its text"`
	Text       *string     `json:"text" doc:"the payload as text; null if it is not valid UTF-8"`
	Base64     string      `json:"base64,omitempty" doc:"the payload in Base64 if it is not valid UTF-8"`
	Topic      string      `json:"topic"`
	Properties *Properties `json:"properties,omitempty" doc:"its properties (version 5)"`
}

// toResult returns a message as actions return it.
func (m *message) toResult() Message {
	out := Message{Topic: m.topic, Properties: m.properties}
	if out.Text, out.Base64 = part.Text(m.payload); out.Text == nil {
		return out
	}
	out.Value = *out.Text
	if v, err := value.Decode(m.payload); err == nil {
		out.Value = v
	}
	return out
}

type requestResult struct {
	Success bool `json:"success" doc:"always true"`
	Message
	DryRun bool `json:"dry_run" doc:"true if nothing was sent because of dry_run in the settings"`
}

func (c *client) Request(ctx context.Context, req *tea.Request, p requestParams) (*requestResult, error) {
	s, m, w, err := c.prepare(p.Outgoing)
	if err != nil {
		return nil, guard.NotSent(err)
	}
	if m.responseTopic, err = s.responseTopic(p.ResponseTopic); err != nil {
		return nil, guard.NotSent(err)
	}
	if s.config.Protocol != "3.1.1" {
		m.correlation = []byte(rand.Text())
	}
	result := &requestResult{Success: true}
	result.DryRun, err = c.guards.Permit(ctx, req, w, func(ctx context.Context) error {
		answer, err := s.request(ctx, m, part.Seconds(p.TimeoutSeconds))
		if err == nil {
			result.Message = answer.toResult()
		}
		return err
	})
	return result, err
}

func (s *server) responseTopic(given string) (string, error) {
	switch {
	case given != "":
		return given, nil
	case s.config.Protocol == "3.1.1":
		return "", tea.Errorf(tea.ValidationError, "response_topic is missing: version 3.1.1 of the protocol cannot send one with the message")
	}
	return "tea/response/" + rand.Text(), nil
}

// request publishes a message and waits for the response.
func (s *server) request(ctx context.Context, m *message, limit time.Duration) (*message, error) {
	answers := make(chan *message, 1)
	conn, stop, err := s.listen(ctx, m.responseTopic, m.qos, func(got *message) {
		if got.retain || m.correlation != nil && string(got.correlation) != string(m.correlation) {
			return // an older response, or one to another request
		}
		select {
		case answers <- got:
		default:
		}
	})
	if err != nil {
		return nil, guard.NotSent(err)
	}
	defer stop()
	if _, err := s.publish(ctx, conn, m); err != nil {
		return nil, err
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case answer := <-answers:
		return answer, nil
	case <-ctx.Done():
		return nil, guard.Unknown(tea.Errorf(tea.AsError(ctx.Err()).Type, "no response to the message to %q came before the call ended", m.topic))
	case <-timer.C:
		return nil, guard.Unknown(tea.Errorf(tea.Timeout, "no response to the message to %q came within %s", m.topic, limit))
	case <-conn.done():
		return nil, guard.Unknown(tea.Errorf(tea.ConnectionError, "the connection to the MQTT broker %s was lost before the response to the message to %q came", s, m.topic))
	}
}

type lastParams struct {
	Server      string  `json:"server,omitempty" doc:"name of the broker in settings.mqtt.servers; can be left out if there is one"`
	Topic       string  `json:"topic" minLength:"1" maxLength:"16383" pattern:"^[^+#\\x00]*$" doc:"topic, without wildcards"`
	WaitSeconds float64 `json:"wait_seconds,omitempty" default:"1" minimum:"0.01" maximum:"60" doc:"how long to wait for the message: the broker does not say that it has none"`
}

type lastResult struct {
	Success bool `json:"success" doc:"always true"`
	Found   bool `json:"found" doc:"whether the broker has sent a retained message"`
	Message
}

func (c *client) Last(ctx context.Context, _ *tea.Request, p lastParams) (*lastResult, error) {
	s, err := c.Server(p.Server)
	if err != nil {
		return nil, err
	}
	found := make(chan *message, 1)
	conn, stop, err := s.listen(ctx, p.Topic, 0, func(m *message) {
		if m.retain {
			select {
			case found <- m:
			default:
			}
		}
	})
	if err != nil {
		return nil, err
	}
	defer stop()
	timer := time.NewTimer(part.Seconds(p.WaitSeconds))
	defer timer.Stop()
	select {
	case m := <-found:
		return &lastResult{Success: true, Found: true, Message: m.toResult()}, nil
	case <-timer.C:
		return &lastResult{Success: true, Message: Message{Topic: p.Topic}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-conn.done():
		return nil, tea.Errorf(tea.ConnectionError, "the connection to the MQTT broker %s was lost", s)
	}
}
