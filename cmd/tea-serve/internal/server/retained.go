package server

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"github.com/eclipse/paho.golang/paho"
)

const (
	// maxTopics is the number of topics per trigger whose last message is remembered.
	maxTopics = 10_000
	// maxInFlight is the number of unacknowledged messages that a broker may send. Twice
	// as many are remembered by their packet identifiers.
	maxInFlight = 128
)

// retainHandling returns which retained messages the broker sends with a subscription:
// all, none, or only those of a new subscription.
func (t *trigger) retainHandling() byte {
	switch t.MQTT.Retained {
	case "always":
		return 0
	case "ignore":
		return 2
	}
	return 1
}

// handled returns the ledger changes that mark a message as handled, and whether to
// skip the message because it was handled before. A retained message is compared with
// the last one of its topic; a message that the broker resends is recognized by its
// packet identifier. The ledger stores the changes as files.
func (c *subscriptions) handled(t *trigger, p *paho.Publish) (changes []*entry, skip bool) {
	if p.Retain && t.MQTT.Retained == "ignore" { // the broker ignored the option of the subscription
		return nil, true
	}
	sum := sha256.Sum256(append([]byte(p.Topic+"\x00"), p.Payload...))
	stamp := hex.EncodeToString(sum[:16])
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	seen := c.s.led.state.files[t.id]
	if p.QoS > 0 {
		id := &fileSeen{t.id, fmt.Sprintf("\x00%d", p.PacketID%(2*maxInFlight)), fmt.Sprintf("%d %s", p.PacketID, stamp)}
		if p.Duplicate() && seen[id.Name] == id.Stamp {
			return nil, true
		}
		changes = append(changes, &entry{File: id})
	}
	if t.MQTT.Retained == "always" {
		return changes, false
	}
	last := &fileSeen{t.id, p.Topic, stamp}
	before := seen[last.Name]
	switch {
	case p.Retain && before == stamp:
		return nil, true
	case before == "" && len(seen) >= maxTopics+2*maxInFlight:
		for name := range seen {
			if name[:1] != "\x00" {
				changes = append(changes, &entry{File: &fileSeen{Trigger: t.id, Name: name}})
				break
			}
		}
	}
	changes = append(changes, &entry{File: last})
	if p.Retain && before == "" && c.s.lost {
		_, _ = c.s.led.add(false, changes...) // the next connection asks again
		c.s.svc.Log.Warn(fmt.Sprintf("the trigger %q of %s skips the retained message of the topic %.100q: the server's state was missing, so the message may have been handled before; to handle it, publish it again", t.Name, t.workflow, p.Topic))
		return nil, true
	}
	return changes, false
}
