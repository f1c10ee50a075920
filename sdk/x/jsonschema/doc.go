// Package jsonschema checks values of the value model (package sdk/value)
// against a JSON Schema of draft 2020-12 or draft 7. It reports every
// violation, not only the first. Start with [Compile].
//
// Integers are compared exactly, also beyond 2^53, and 3.0 counts as an integer. The formats
// date-time, date, email, uri, uuid, ipv4 and ipv6 are checked; other formats are
// annotations. References cannot leave the document: nothing is ever loaded.
//
// Schemas can be untrusted: references that lead back to themselves are rejected, patterns run
// in linear time, and a check ends after a bounded number of steps.
package jsonschema
