package mqtt

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"

	"github.com/eclipse/paho.golang/packets"
	"github.com/eclipse/paho.golang/paho"
)

// conn5 is a connection with version 5 of the protocol.
type conn5 struct{ client *paho.Client }

// connect5 connects over nc, which it owns.
func connect5(ctx context.Context, s *server, nc net.Conn, id string) (conn, error) {
	client := paho.NewClient(paho.ClientConfig{
		Conn: packets.NewThreadSafeConn(nc), PacketTimeout: s.config.timeout(),
		OnServerDisconnect: func(*paho.Disconnect) {}, OnClientError: func(error) {},
		OnPublishReceived: []func(paho.PublishReceived) (bool, error){func(p paho.PublishReceived) (bool, error) {
			m := &message{topic: p.Packet.Topic, payload: p.Packet.Payload, qos: p.Packet.QoS, retain: p.Packet.Retain}
			if p.Packet.Properties != nil {
				m.properties, m.correlation = fromProperties(p.Packet.Properties), p.Packet.Properties.CorrelationData
			}
			s.received(m)
			return true, nil
		}},
	})
	packet := &paho.Connect{
		ClientID: id, CleanStart: true, KeepAlive: uint16(s.config.KeepAliveSeconds),
		Username: s.config.Username, UsernameFlag: s.config.Username != "",
		Password: []byte(s.config.Password), PasswordFlag: s.config.Password != "",
		// The library reserves memory for as many messages as it may receive at once.
		Properties: &paho.ConnectProperties{ReceiveMaximum: paho.Uint16(100), RequestProblemInfo: true},
	}
	if w := s.config.Will; w != nil {
		packet.WillMessage = &paho.WillMessage{Topic: w.Topic, Payload: []byte(w.Payload), QoS: byte(w.QoS), Retain: w.Retain}
	}
	ack, err := client.Connect(ctx, packet)
	if err != nil {
		if ack != nil && ack.ReasonCode >= 0x80 {
			return nil, &refusedError{ack.ReasonCode, reasonOf(ack)}
		}
		_ = nc.Close()
		return nil, err
	}
	return &conn5{client}, nil
}

func reasonOf(ack *paho.Connack) string {
	if ack.Properties != nil && ack.Properties.ReasonString != "" {
		return ack.Properties.ReasonString
	}
	return (&packets.Connack{ReasonCode: ack.ReasonCode}).Reason()
}

func (c *conn5) publish(ctx context.Context, m *message) (delivery, error) {
	p := &paho.Publish{Topic: m.topic, Payload: m.payload, QoS: m.qos, Retain: m.retain, Properties: m.properties.toPaho()}
	p.Properties.ResponseTopic, p.Properties.CorrelationData = m.responseTopic, m.correlation
	resp, err := c.client.Publish(ctx, p)
	switch {
	case errors.Is(err, paho.ErrInvalidArguments):
		return delivery{}, unsentError{err}
	case resp != nil && resp.ReasonCode >= 0x80: // the library has no error in this case with QoS 2
		reason := ""
		if resp.Properties != nil {
			reason = resp.Properties.ReasonString
		}
		return delivery{}, &refusedError{resp.ReasonCode, reason}
	case err != nil:
		return delivery{}, err
	}
	return delivery{unheard: resp != nil && resp.ReasonCode == packets.PubackNoMatchingSubscribers}, nil
}

func (c *conn5) subscribe(ctx context.Context, topic string, qos byte) error {
	ack, err := c.client.Subscribe(ctx, &paho.Subscribe{Subscriptions: []paho.SubscribeOptions{{Topic: topic, QoS: qos}}})
	if ack != nil && len(ack.Reasons) == 1 && ack.Reasons[0] >= 0x80 {
		return &refusedError{code: ack.Reasons[0]}
	}
	return err
}

func (c *conn5) unsubscribe(ctx context.Context, topic string) error {
	_, err := c.client.Unsubscribe(ctx, &paho.Unsubscribe{Topics: []string{topic}})
	return err
}

func (c *conn5) done() <-chan struct{} { return c.client.Done() }

func (c *conn5) close() { _ = c.client.Disconnect(&paho.Disconnect{}) }

// toPaho returns the properties as the library has them. p can be nil.
func (p *Properties) toPaho() *paho.PublishProperties {
	if p == nil {
		return &paho.PublishProperties{}
	}
	out := &paho.PublishProperties{ContentType: p.ContentType}
	if p.ExpirySeconds > 0 {
		out.MessageExpiry = paho.Uint32(uint32(p.ExpirySeconds))
	}
	for _, key := range slices.Sorted(maps.Keys(p.User)) {
		out.User.Add(key, p.User[key])
	}
	return out
}

func fromProperties(p *paho.PublishProperties) *Properties {
	out := &Properties{ContentType: p.ContentType}
	if p.MessageExpiry != nil {
		out.ExpirySeconds = int64(*p.MessageExpiry)
	}
	for _, user := range p.User {
		if out.User == nil {
			out.User = map[string]string{}
		}
		out.User[user.Key] = user.Value
	}
	return out
}
