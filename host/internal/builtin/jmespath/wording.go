package jmespath

import "strings"

// reworded replaces the token names in the parser's messages, such as
// TOKRbracket. If one name is a prefix of another, the longer one comes first.
func reworded(message string) string {
	return strings.NewReplacer(
		"SyntaxError: ", "", "Expected tQuotedIdentifier or tUnquotedIdentifier", "expected a name",
		"Expected tColon or tNumber", "expected : or a number", "Expected identifier, lbracket, or lbrace", "expected a name, [ or {", "Expected ", "expected ", ", received: ", ", found ",
		"Unexpected token: ", "unexpected ", "Invalid token: ", "unexpected ", "Incomplete expression", "the expression is incomplete", "Unknown char: ", "unknown character ",
		"TOKEOF", "the end", "TOKUnquotedIdentifier", "a name", "TOKQuotedIdentifier", "a quoted name", "TOKNumber", "a number",
		"TOKJSONLiteral", "a literal", "TOKStringLiteral", "a text", "TOKVarref", "a variable", "TOKUnknown", "something unknown",
		"TOKStar", "*", "TOKDot", ".", "TOKFilter", "[?", "TOKFlatten", "[]", "TOKLparen", "(", "TOKRparen", ")", "TOKLbracket", "[", "TOKRbracket", "]",
		"TOKLbrace", "{", "TOKRbrace", "}", "TOKOr", "||", "TOKPipe", "|", "TOKComma", ",", "TOKColon", ":", "TOKPlus", "+", "TOKMinus", "-",
		"TOKMultiply", "*", "TOKDivide", "/", "TOKDiv", "//", "TOKModulo", "%", "TOKLTE", "<=", "TOKLT", "<", "TOKGTE", ">=", "TOKGT", ">",
		"TOKEQ", "==", "TOKNE", "!=", "TOKCurrent", "@", "TOKRoot", "$", "TOKExpref", "&", "TOKAnd", "&&", "TOKNot", "!", "TOKAssign", "=",
	).Replace(message)
}
