package pb

import (
	"log/slog"
	"strings"
)

// FromLog converts a log record to the wire.
func FromLog(level slog.Level, message string, fields map[string]any) *Log {
	out := &Log{Level: strings.ToLower(level.String()), Message: Text(message)}
	if len(fields) > 0 {
		out.FieldsJson = fromFields(fields)
	}
	return out
}

// ToLog converts a log record from the wire. An unknown level counts as info.
func ToLog(l *Log) (slog.Level, string, map[string]any) {
	return ToLevel(l.GetLevel()), l.GetMessage(), toFields(l.GetFieldsJson())
}

// ToLevel reads the name of a log level; an unknown one counts as info.
func ToLevel(name string) slog.Level {
	var level slog.Level
	if level.UnmarshalText([]byte(name)) != nil {
		if strings.EqualFold(name, "trace") {
			return slog.LevelDebug
		}
		return slog.LevelInfo
	}
	return level
}

// Text converts s to valid UTF-8, as protobuf requires: a token can end in the
// middle of a character, an error can quote any bytes.
func Text(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
