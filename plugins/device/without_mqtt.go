//go:build minimal && !mqtt

package device

import "github.com/the-edge-agent/tea/plugins/device/internal/part"

func mqttPart() []part.Part { return nil }
