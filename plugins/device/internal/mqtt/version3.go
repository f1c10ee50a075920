package mqtt

import (
	"context"
	"errors"
	"net"
	"net/url"
	"sync"
	"time"

	mqtt3 "github.com/eclipse/paho.mqtt.golang"
	packets3 "github.com/eclipse/paho.mqtt.golang/packets"
)

// conn3 is a connection with version 3.1.1 of the protocol.
type conn3 struct {
	client mqtt3.Client
	ended  chan struct{}
	end    func()
}

// protocol311 is the number of version 3.1.1 in the packets.
const protocol311 = 4

// connect3 connects over nc, which it owns.
func connect3(ctx context.Context, s *server, nc net.Conn, id string) (conn, error) {
	c := &conn3{ended: make(chan struct{})}
	c.end = sync.OnceFunc(func() { close(c.ended) })
	o := mqtt3.NewClientOptions().AddBroker(s.config.URL).SetProtocolVersion(protocol311).SetClientID(id).SetCleanSession(true).
		SetAutoReconnect(false).SetConnectRetry(false).SetOrderMatters(s.ordered).
		SetKeepAlive(time.Duration(s.config.KeepAliveSeconds) * time.Second).SetPingTimeout(s.config.timeout()).
		SetConnectTimeout(s.config.timeout()).SetWriteTimeout(s.config.timeout()).
		SetUsername(s.config.Username).SetPassword(s.config.Password).
		SetCustomOpenConnectionFn(func(*url.URL, mqtt3.ClientOptions) (net.Conn, error) { return nc, nil }).
		SetConnectionLostHandler(func(mqtt3.Client, error) { c.end() }).
		SetDefaultPublishHandler(func(_ mqtt3.Client, m mqtt3.Message) {
			s.received(&message{topic: m.Topic(), payload: m.Payload(), qos: m.Qos(), retain: m.Retained()})
		})
	if w := s.config.Will; w != nil {
		o.SetBinaryWill(w.Topic, []byte(w.Payload), byte(w.QoS), w.Retain)
	}
	c.client = mqtt3.NewClient(o)
	token := c.client.Connect().(*mqtt3.ConnectToken)
	if err := wait(ctx, token); err != nil {
		_ = nc.Close()
		if code := token.ReturnCode(); code > 0 && code <= packets3.ErrRefusedNotAuthorised {
			return nil, &refusedError{version5Codes[code], packets3.ConnackReturnCodes[code]}
		}
		return nil, err
	}
	return c, nil
}

// version5Codes are the codes of a refused connection in version 5.
var version5Codes = map[byte]byte{1: 0x84, 2: 0x85, 3: 0x88, 4: 0x86, 5: 0x87}

// wait waits for the end of an operation.
func wait(ctx context.Context, token mqtt3.Token) error {
	select {
	case <-token.Done():
		return token.Error()
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (c *conn3) publish(ctx context.Context, m *message) (delivery, error) {
	if !c.client.IsConnectionOpen() {
		return delivery{}, unsentError{errLost}
	}
	err := wait(ctx, c.client.Publish(m.topic, m.qos, m.retain, m.payload))
	if errors.Is(err, mqtt3.ErrNotConnected) {
		err = unsentError{errLost}
	}
	return delivery{}, err
}

// refusedSubscription is the code of a refused subscription.
const refusedSubscription = 0x80

func (c *conn3) subscribe(ctx context.Context, topic string, qos byte) error {
	token := c.client.Subscribe(topic, qos, nil)
	err := wait(ctx, token)
	if t, ok := token.(*mqtt3.SubscribeToken); ok && err != nil && ctx.Err() == nil && t.Result()[topic] == refusedSubscription {
		return &refusedError{code: refusedSubscription}
	}
	return err
}

func (c *conn3) unsubscribe(ctx context.Context, topic string) error {
	return wait(ctx, c.client.Unsubscribe(topic))
}

func (c *conn3) done() <-chan struct{} { return c.ended }

func (c *conn3) close() {
	c.end()
	// The time in milliseconds is for packets being sent.
	c.client.Disconnect(250)
}

var errLost = errors.New("the connection was lost")
